"""What ``softswitch trace`` tells of a packet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from softswitch.cli import main

BUILD = Path(__file__).parent / "p4" / "build"
ROUTER = str(BUILD / "l3_router.json")
ENTRIES = """
packet 1 00  # such lines are skipped
expect 2
add acl 5 dst_addr:0x0a0000** acl_permit()
add route_ipv4 dst_addr:0x0a000000/8 route_via(nexthop_id:7)
add neighbour nexthop_id:7 forward(port:2, dst_addr:0x020000000009)
add router_port port:2 set_source(src_addr:0x020000000001)
"""
ETHERNET = "0200000000ff0200000000fe0800"
IPV4 = "4500001c000000004001 65dd 0a000102 0a000003".replace(" ", "")
ROUTED = "4500001c000000003f01 66dd 0a000102 0a000003".replace(" ", "")
BAD_CHECKSUM = "4500001c000000004001 65de 0a000102 0a000003".replace(" ", "")


@pytest.fixture
def entries(tmp_path: Path) -> str:
    path = tmp_path / "entries.stf"
    path.write_text(ENTRIES)
    return str(path)


def text_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main(["trace", ROUTER, *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_routed_packet_step_by_step(entries: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = text_of(["--entries", entries, "--packet", ETHERNET + IPV4 + "0800f7ff00000000", "--port", "1"], capsys)
    assert lines == [
        "ingress: 42 bytes from port 1",
        "parser state start",
        "parser state parse_ethernet",
        "    extract ethernet, 14 bytes",
        "parser state parse_ipv4",
        "    extract ipv4, 20 bytes",
        "if hdr.packet_out.isValid() (line 247): false",
        "if standard_metadata.checksum_error == 1 || standard_metadata.parser_error != error.NoError (line 252): false",
        "if hdr.ipv4.isValid() (line 254): true",
        "table RouterIngress.acl [ingress_port=0x0001, src_addr=0x0a000102, dst_addr=0x0a000003, protocol=0x01, "
        "l4_src_port=0x0000, l4_dst_port=0x0000] hit: dst_addr=0xa000000&&&0xffffff00 -> "
        "RouterIngress.acl_permit(), priority 5 (entries.stf:4)",
        "    action RouterIngress.acl_permit()",
        "if hdr.ipv4.ttl <= 1 (line 256): false",
        "table RouterIngress.route_ipv4 [dst_addr=0x0a000003] hit: dst_addr=0xa000000/8 -> "
        "RouterIngress.route_via(0x7) (entries.stf:5)",
        "    action RouterIngress.route_via(0x7)",
        "if meta.routed (line 260): true",
        "    hdr.ipv4.ttl = hdr.ipv4.ttl - 1",
        "if meta.routed (line 276): true",
        "table RouterIngress.neighbour [nexthop_id=0x0007] hit: nexthop_id=0x7 -> "
        "RouterIngress.forward(0x2, 0x20000000009) (entries.stf:6)",
        "    action RouterIngress.forward(0x2, 0x20000000009)",
        "table RouterIngress.router_port [port=0x0002] hit: port=0x2 -> "
        "RouterIngress.set_source(0x20000000001) (entries.stf:7)",
        "    action RouterIngress.set_source(0x20000000001)",
        "egress port 2",
        "    emit ethernet",
        "    emit ipv4",
        "transmit on port 2, 42 bytes",
        f"port 2 sends 020000000009020000000001{ETHERNET[24:]}{ROUTED}0800f7ff00000000",
    ]


def test_a_dropped_packet_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    lines = text_of(["--packet", ETHERNET + BAD_CHECKSUM, "--port", "1"], capsys)
    assert lines[-4:] == [
        "    action RouterIngress.drop()",
        "if meta.routed (line 276): false",
        "drop: dropped in ingress",
        "nothing leaves",
    ]


def test_a_parser_error_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    lines = text_of(["--packet", ETHERNET + "45", "--port", "1"], capsys)
    assert lines[4:6] == ["parser state parse_ipv4", "parser error PacketTooShort"]


def test_an_entry_of_the_program_is_shown_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    program = str(BUILD / "tables.json")
    assert main(["trace", program, "--packet", "0000 0a77".replace(" ", "") + "00" * 26, "--port", "0"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "const_entries" in line]
    assert line == (
        "table TablesIngress.const_entries [hdr.request.word=0x0a77, hdr.request.narrow=0x00] hit: "
        "hdr.request.word=0xa00&&&0xff00 -> TablesIngress.set_const(0x1), priority 1 (of the program)"
    )


def test_json_has_steps_and_outputs(entries: str, capsys: pytest.CaptureFixture[str]) -> None:
    packet = ETHERNET + IPV4 + "0800f7ff00000000"
    assert main(["trace", ROUTER, "--entries", entries, "--packet", packet, "--port", "1", "--json"]) == 0
    traced = json.loads(capsys.readouterr().out)
    tables = {step["name"]: step for step in traced["steps"] if step["step"] == "table"}
    assert tables["RouterIngress.neighbour"] == {
        "step": "table",
        "name": "RouterIngress.neighbour",
        "key": {"nexthop_id": "0x0007"},
        "hit": True,
        "entry": 1,
        "entry_text": "nexthop_id=0x7 -> RouterIngress.forward(0x2, 0x20000000009) (entries.stf:6)",
    }
    assert [output["port"] for output in traced["outputs"]] == [2]
