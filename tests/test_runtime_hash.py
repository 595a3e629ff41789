"""The hash algorithms give BMv2's values."""

from __future__ import annotations

import ctypes
import random
import zlib

import pytest

from tests.native.fake import library

CHECK = b"123456789"  # the check input of the CRC catalogues


def run(name: str, data: bytes) -> int:
    result: int = getattr(library(), f"sw_{name}")(data, len(data))
    return result


@pytest.mark.parametrize(
    ("name", "data", "value"),
    [
        ("crc16", CHECK, 0xBB3D),
        ("crc16", b"", 0),
        ("crc32", CHECK, 0xCBF43926),
        ("crcCCITT", CHECK, 0x29B1),
        ("crcCCITT", b"", 0xFFFF),
        ("csum16", bytes.fromhex("45000073000040004011 0000c0a80001c0a800c7"), 0xB861),
        ("csum16", b"", 0xFFFF),
        ("csum16", b"\x12", 0xEDFF),
        ("csum16", b"\xff\xff", 0),
        ("cksum16", bytes.fromhex("45000073000040004011 0000c0a80001c0a800c7"), 0xB861),
        ("xor16", bytes.fromhex("1234 abcd 56"), 0x1234 ^ 0xABCD ^ 0x5600),
        ("xor16", b"", 0),
        ("identity", bytes.fromhex("0102030405"), 0x0102030405),
        ("identity", bytes.fromhex("0102030405060708ff"), 0x0102030405060708),
        ("xxh64", b"", 0xEF46DB3751D8E999),
        ("xxh64", b"a", 0xD24EC4F1A98C6E5B),
        ("xxh64", b"abc", 0x44BC2CF5AD770999),
    ],
)
def test_known_answers(name: str, data: bytes, value: int) -> None:
    assert run(name, data) == value


def inputs() -> list[bytes]:
    """Every length up to 200 bytes, twice."""
    source = random.Random(1)
    return [source.randbytes(length) for length in range(201) for _ in range(2)]


def test_crc32_of_every_length() -> None:
    assert [run("crc32", data) for data in inputs()] == [zlib.crc32(data) for data in inputs()]


def crc_bit_by_bit(data: bytes, poly: int, register: int) -> int:
    """A reflected 16-bit CRC."""
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (poly if register & 1 else 0)
    return register


def test_crc16_of_every_length() -> None:
    assert [run("crc16", data) for data in inputs()] == [crc_bit_by_bit(data, 0xA001, 0) for data in inputs()]


def internet_checksum(data: bytes) -> int:
    """RFC 1071."""
    total = sum(int.from_bytes(data[i : i + 2].ljust(2, b"\0"), "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total >> 16) + (total & 0xFFFF)
    return total ^ 0xFFFF


def test_csum16_of_every_length() -> None:
    assert [run("csum16", data) for data in inputs()] == [internet_checksum(data) for data in inputs()]
    assert run("csum16", b"\xff" * 100_000) == 0


def hash_ex(data: bytes) -> int:
    """BMv2's: bytes are signed."""
    value = 2166136261
    for byte in data:
        value = (value ^ (byte - 256 if byte > 127 else byte)) * 16777619 & 0xFFFFFFFF
    for shift in (13, -7, 3, -17, 5):
        value = value + (value << shift) & 0xFFFFFFFF if shift > 0 else value ^ value >> -shift
    return value


def test_hash_ex_takes_bytes_as_signed() -> None:
    assert [run("hash_ex", data) for data in inputs()] == [hash_ex(data) for data in inputs()]


class CrcParams(ctypes.Structure):
    _fields_ = [
        ("width", ctypes.c_uint32),
        ("poly", ctypes.c_uint64),
        ("init", ctypes.c_uint64),
        ("xor_out", ctypes.c_uint64),
        ("reflect_in", ctypes.c_bool),
        ("reflect_out", ctypes.c_bool),
    ]


@pytest.mark.parametrize(
    ("params", "value"),
    [
        ((8, 0x07, 0, 0, False, False), 0xF4),  # CRC-8/SMBUS
        ((16, 0x1021, 0, 0, False, False), 0x31C3),  # CRC-16/XMODEM
        ((16, 0x8005, 0, 0, True, True), 0xBB3D),  # CRC-16/ARC, BMv2's default
        ((16, 0x8005, 0xFFFF, 0, True, True), 0x4B37),  # CRC-16/MODBUS
        ((32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, True, True), 0xCBF43926),  # BMv2's default
        ((32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, False, False), 0xFC891918),  # CRC-32/BZIP2
        ((32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, True, True), 0xE3069283),  # CRC-32/ISCSI
        ((64, 0x1B, (1 << 64) - 1, (1 << 64) - 1, True, True), 0xB90956C775A41001),  # CRC-64/GO-ISO
    ],
)
def test_custom_crcs(params: tuple[int, int, int, int, bool, bool], value: int) -> None:
    crc = library().sw_crc_custom
    crc.restype, crc.argtypes = ctypes.c_uint64, [ctypes.POINTER(CrcParams), ctypes.c_char_p, ctypes.c_size_t]
    assert crc(ctypes.byref(CrcParams(*params)), CHECK, len(CHECK)) == value
