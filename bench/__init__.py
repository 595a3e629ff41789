"""Benchmarks: each prints its figures with a baseline from the same run. ``scripts/bench`` is the command."""
