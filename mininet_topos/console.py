"""Mininet's command line with what a fabric has besides: faults and queues, and news of switches that died."""

from __future__ import annotations

from mininet.cli import CLI
from mininet.log import error, output
from typer import BadParameter

from mininet_topos import faults, live, queues
from mininet_topos.network import FabricNet
from softswitch.cli.units import amount


class Console(CLI):
    """Reads commands until the user leaves."""

    mn: FabricNet

    def do_fault(self, line: str) -> None:
        """Make what one node sends to another meet a fault, or remove it in both directions.
        Usage: fault n1 p1s1 loss=1% delay=1ms ...
               fault n1 p1s1 clear"""
        words = line.split()
        if len(words) < 3:
            error("usage: fault SENDER RECEIVER NAME=VALUE... | fault A B clear\n")
            return
        a, b, *settings = words
        try:
            if settings == ["clear"]:
                said = faults.clear_fault(self.mn.live(), a, b)
            else:
                said = faults.set_fault(self.mn.live(), a, b, faults.parse(settings))
        except live.LiveError as problem:
            error(f"{problem}\n")
        else:
            output("\n".join(said) + "\n")

    def do_queues(self, line: str) -> None:
        """Set the queues of a device's port.
        Usage: queues p1s1 1 rate_bps=10M | rate_pps=1000 | depth_packets=32 ..."""
        try:
            name, port, *settings = line.split()
            given = dict(word.split("=", 1) for word in settings)
            wanted = queues.QueueSettings(**{key: amount(value) for key, value in given.items()})
            queues.set_queues(self.mn.live().node(name), int(port), wanted)
        except live.LiveError as problem:
            error(f"{problem}\n")
        except (BadParameter, TypeError, ValueError):
            error("usage: queues DEVICE PORT rate_bps=N|rate_pps=N|depth_packets=N ...\n")

    def postcmd(self, stop: bool, line: str) -> bool:
        """After each command, look after the switches."""
        for switch in self.mn.switches:
            if news := switch.died():
                error(f"*** {news}\n")
        return stop
