"""Simple Test Framework: p4c's packet tests, run on a device in virtual time."""
