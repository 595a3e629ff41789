"""Fuzzing under AddressSanitizer and UndefinedBehaviorSanitizer: ``python -m tests.fuzz --help``.

A *case* is a kind, a program and a seed: it does the same every time. Kinds are ``device`` (packets and control calls
in random order), ``json`` (mutated programs), ``threads`` (control calls beside packets), ``rpc`` (P4Runtime messages)
and ``text`` (STF files and options of the commands). A supervisor runs cases in a worker process, which a finding ends.
"""
