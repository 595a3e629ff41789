"""The Thrift calls that set BMv2's queues, byte by byte, and what is made of the answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mininet_topos.thrift import SimpleSwitchClient, ThriftError, wait_until_served

RATE = b"simple_switch:set_egress_priority_queue_rate"
DEPTH = b"simple_switch:set_egress_priority_queue_depth"
DONE = bytes.fromhex("80010002 00000001 78 00000001 080000 00000000 00")  # an i32 that is 0


@contextmanager
def server(answer: bytes, request_size: int) -> Iterator[tuple[int, list[bytes]]]:
    """A port where one request of that many bytes is answered, and what was requested."""
    requests: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                requests.append(connection.recv(request_size, socket.MSG_WAITALL))
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1], requests
        thread.join(5)


def test_a_rate_is_one_call() -> None:
    expected = (
        bytes.fromhex("80010001") + len(RATE).to_bytes(4) + RATE + bytes.fromhex("00000001")
        + bytes.fromhex("080001 00000003  080002 00000007  0a0003 00000000000003e8  00")
    )  # fmt: skip
    with server(DONE, len(expected)) as (port, requests), SimpleSwitchClient(port) as client:
        client.set_queue_rate(3, 7, 1000)
    assert requests == [expected]


def test_a_depth_is_one_call() -> None:
    expected = (
        bytes.fromhex("80010001") + len(DEPTH).to_bytes(4) + DEPTH + bytes.fromhex("00000001")
        + bytes.fromhex("080001 00000003  080002 00000000  080003 00000020  00")
    )  # fmt: skip
    with server(DONE, len(expected)) as (port, requests), SimpleSwitchClient(port) as client:
        client.set_queue_depth(3, 0, 32)
    assert requests == [expected]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            bytes.fromhex("80010003 00000001 78 00000001 0b0001 00000003 776879 080002 00000001 00"),
            f"{DEPTH.decode()}: why",
        ),
        (
            bytes.fromhex("80010002 00000001 78 00000001 080000 00000002 00"),
            f"{DEPTH.decode()}: refused",
        ),
        (
            bytes.fromhex("80010002 00000001 78 00000001 0f0000"),
            "an answer of unknown type 15",
        ),
        (
            bytes.fromhex("80010002 00000001 78 00000001 0c0001 080001 00000001 00 00"),
            f"{DEPTH.decode()}: refused",
        ),
        (b"\x80\x01", "the switch closed the Thrift connection"),
    ],
)  # fmt: skip
def test_a_refusal_is_an_error_with_its_reason(answer: bytes, message: str) -> None:
    size = 4 + 4 + len(DEPTH) + 4 + 3 * 7 + 1
    with server(answer, size) as (port, _), SimpleSwitchClient(port) as client, pytest.raises(ThriftError) as error:
        client.set_queue_depth(3, 0, 32)
    assert str(error.value) == message


def test_nobody_there_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ThriftError, match=f"no simple_switch listens on Thrift port {port}: .*refused"):
        SimpleSwitchClient(port)


def test_a_switch_is_waited_for_until_it_answers() -> None:
    """It closes a connection, then says that it has no such service, then answers."""
    no_service = bytes.fromhex("80010003 00000001 78 00000000 0b0001 00000002 6e6f 080002 00000000 00")
    time_us = bytes.fromhex("80010002 00000001 78 00000001 0a0000 0000000000000007 00")
    name = b"simple_switch:get_time_elapsed_us"
    expected = bytes.fromhex("80010001") + len(name).to_bytes(4) + name + bytes.fromhex("00000001 00")
    requests = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for answer in (b"", no_service, time_us):
                connection, _ = listener.accept()
                with connection:
                    requests.append(connection.recv(len(expected), socket.MSG_WAITALL))
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        wait_until_served(listener.getsockname()[1], 30, lambda: True)
        thread.join(5)
    assert requests == [expected] * 3


@pytest.mark.parametrize(("seconds", "is_alive"), [(0.05, True), (30, False)])
def test_a_switch_that_does_not_answer_is_not_waited_for_for_ever(seconds: float, is_alive: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ThriftError, match=f"no simple_switch listens on Thrift port {port}"):
        wait_until_served(port, seconds, lambda: is_alive)
