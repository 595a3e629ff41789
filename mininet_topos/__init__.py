"""Emulated fabrics in Mininet: switches and SmartNICs on either target, hosts, and what an operator does to them.

``topology`` says what is connected to what, ``single_switch`` and ``multiplane`` make such descriptions, ``network``
runs one in Mininet, ``live`` looks into a running one and changes it from anywhere on the machine.
"""
