"""Packet tests of every P4 program: one suite for all targets, run by ``scripts/ptf``."""
