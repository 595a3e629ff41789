"""A session of p4runtime-shell, run in .venv-shell by test_clients_shell.py: ADDRESS P4INFO JSON.

Says on standard output, one JSON value a line, what it saw; reads a line from standard input where it waits.
"""

import json
import os
import sys
import traceback

import p4runtime_sh.shell as sh  # type: ignore[import-not-found]
from p4runtime_sh.p4runtime import P4RuntimeWriteException  # type: ignore[import-not-found]


def say(value: object) -> None:
    """Tell the test."""
    print(json.dumps(value), flush=True)


def write_routes() -> None:
    """A route to port 3, read back and refused the second time."""
    route = sh.TableEntry("route_ipv4")(action="route_via")
    route.match["dst_addr"] = "192.168.0.0/16"
    route.action["nexthop_id"] = "7"
    route.insert()
    neighbour = sh.TableEntry("neighbour")(action="forward")
    neighbour.match["nexthop_id"] = "7"
    neighbour.action["port"] = "3"
    neighbour.action["dst_addr"] = "02:00:00:00:00:99"
    neighbour.insert()
    own = sh.TableEntry("router_port")(action="set_source")
    own.match["port"] = "3"
    own.action["src_addr"] = "02:00:00:00:00:03"
    own.insert()
    say([entry.match["dst_addr"].lpm.prefix_len for entry in sh.TableEntry("route_ipv4").read()])
    try:
        route.insert()
    except P4RuntimeWriteException as error:
        say([[index, detail.canonical_code, detail.message] for index, detail in error.errors])


def exchange_packets() -> None:
    """A packet in, the same out of port 4, and the counter of the entry that sent it here."""
    packets = sh.PacketIn()
    rule = sh.TableEntry("acl")(action="acl_punt", priority=1)
    rule.match["dst_addr"] = "10.0.0.2&&&255.255.255.255"
    rule.insert()
    say("send me a packet")
    sys.stdin.readline()
    (message,) = packets.sniff(timeout=3)
    packet = message.packet
    say([packet.payload.hex(), [m.value.hex() for m in packet.metadata]])
    out = sh.PacketOut(payload=packet.payload)
    out.metadata["egress_port"] = "4"
    out.metadata["_pad"] = "0"
    out.send()
    counter = sh.DirectCounterEntry("acl_counter")
    counter.table_entry.match["dst_addr"] = "10.0.0.2&&&255.255.255.255"
    counter.table_entry.priority = 1
    say([read.packet_count for read in counter.read()])


def replicate() -> None:
    """A clone session and a multicast group, read back."""
    session = sh.CloneSessionEntry(9)
    session.add(2, 1)
    session.insert()
    group = sh.MulticastGroupEntry(4)
    group.add(1, 1).add(2, 1)
    group.insert()
    say([len(list(entry.read())) for entry in (sh.CloneSessionEntry(9), sh.MulticastGroupEntry(4))])


def main(address: str, p4info: str, program: str) -> None:
    """The whole session."""
    config = sh.FwdPipeConfig(p4info, program)
    sh.setup(device_id=1, grpc_addr=address, election_id=(0, 1), config=config, verbose=False)
    write_routes()
    exchange_packets()
    replicate()
    sh.TableEntry("route_ipv4").read(lambda entry: entry.delete())
    say(len(list(sh.TableEntry("route_ipv4").read())))
    sh.teardown()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except BaseException:  # the shell's threads would keep a dead session alive
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
