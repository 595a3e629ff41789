"""P4Data of registers and digests: values of bit, int, bool, serializable enum, struct, tuple and header types.

A value is flattened to integers in declaration order, as the device carries it.
"""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4d, p4i, p4t

from softswitch.p4runtime import bytestrings
from softswitch.p4runtime.errors import invalid

MAX_NESTING = 32


def checked(spec: p4t.P4DataTypeSpec, types: p4i.P4Info, what: str, depth: int = 0) -> p4t.P4DataTypeSpec:
    """The type, if every width in it is 1 bit or more and it ends; INVALID_ARGUMENT names ``what`` otherwise."""
    if depth > MAX_NESTING:
        raise invalid(f"{what}: its type is nested more than {MAX_NESTING} deep")
    inner: list[p4t.P4DataTypeSpec] = []
    widths: list[int] = []
    match spec.WhichOneof("type_spec"):
        case "bitstring":
            widths = [_width(spec.bitstring)]
        case "serializable_enum":
            widths = [types.type_info.serializable_enums[spec.serializable_enum.name].underlying_type.bitwidth]
        case "new_type":
            new_type = types.type_info.new_types[spec.new_type.name]
            if new_type.HasField("original_type"):
                inner = [new_type.original_type]
            elif not new_type.translated_type.HasField("sdn_string"):
                widths = [new_type.translated_type.sdn_bitwidth]
        case "struct":
            inner = [m.type_spec for m in types.type_info.structs[spec.struct.name].members]
        case "tuple":
            inner = list(spec.tuple.members)
        case "header":
            widths = [_width(f.type_spec) for f in types.type_info.headers[spec.header.name].members]
    if any(width <= 0 for width in widths):
        raise invalid(f"{what} has the width {min(widths)}; widths are 1 bit and more")
    for member in inner:
        checked(member, types, what, depth + 1)
    return spec


def _width(spec: p4t.P4BitstringLikeTypeSpec) -> int:
    if spec.HasField("varbit"):
        return spec.varbit.max_bitwidth
    return spec.int.bitwidth if spec.HasField("int") else spec.bit.bitwidth


def encode(spec: p4t.P4DataTypeSpec, values: Iterator[int], types: p4i.P4Info) -> p4d.P4Data:
    """The P4Data of type ``spec`` with the next ``values``, which are non-negative bit patterns."""
    kind = spec.WhichOneof("type_spec")
    data = p4d.P4Data()
    if kind == "bitstring":
        data.bitstring = _encode_bits(spec.bitstring, next(values))
    elif kind == "bool":
        data.bool = bool(next(values))
    elif kind == "serializable_enum":
        data.enum_value = bytestrings.encode(next(values))
    elif kind == "new_type":
        return encode(_resolve(spec, types), values, types)
    elif kind == "struct":
        members = types.type_info.structs[spec.struct.name].members
        data.struct.members.extend(encode(m.type_spec, values, types) for m in members)
    elif kind == "tuple":
        data.tuple.members.extend(encode(m, values, types) for m in spec.tuple.members)
    elif kind == "header":
        fields = types.type_info.headers[spec.header.name].members
        data.header.is_valid = True
        data.header.bitstrings.extend(_encode_bits(f.type_spec, next(values)) for f in fields)
    else:
        raise invalid(f"values of type {kind} are not supported")
    return data


def decode(spec: p4t.P4DataTypeSpec, data: p4d.P4Data, what: str, types: p4i.P4Info) -> int:
    """The bit pattern of ``data``, which must be a bit, int, bool or serializable enum as ``spec`` says."""
    spec = _resolve(spec, types)
    kind = spec.WhichOneof("type_spec")
    wanted = {"bitstring": "bitstring", "bool": "bool", "serializable_enum": "enum_value"}.get(kind or "")
    if wanted is None:
        raise invalid(f"{what}: values of type {kind} are not supported")
    if data.WhichOneof("data") != wanted:
        raise invalid(f"{what}: data must be set as {wanted}, not {data.WhichOneof('data')}")
    if kind == "bool":
        return int(data.bool)
    if kind == "serializable_enum":
        underlying = types.type_info.serializable_enums[spec.serializable_enum.name].underlying_type
        return bytestrings.decode(data.enum_value, underlying.bitwidth, what)
    if spec.bitstring.HasField("int"):
        width = spec.bitstring.int.bitwidth
        return bytestrings.decode_signed(data.bitstring, width, what) & ((1 << width) - 1)
    return bytestrings.decode(data.bitstring, spec.bitstring.bit.bitwidth, what)


def _encode_bits(spec: p4t.P4BitstringLikeTypeSpec, pattern: int) -> bytes:
    if spec.HasField("int"):
        width = spec.int.bitwidth
        return bytestrings.encode_signed(pattern - (1 << width) if pattern >> (width - 1) else pattern)
    return bytestrings.encode(pattern)


def _resolve(spec: p4t.P4DataTypeSpec, types: p4i.P4Info) -> p4t.P4DataTypeSpec:
    """The type behind a new type; a translated one is bit<W> to the controller."""
    while spec.WhichOneof("type_spec") == "new_type":
        new_type = types.type_info.new_types[spec.new_type.name]
        if new_type.HasField("original_type"):
            spec = new_type.original_type
        elif new_type.translated_type.HasField("sdn_string"):
            raise invalid(f"type {spec.new_type.name} is translated to strings, which is not supported")
        else:
            bits = p4t.P4BitTypeSpec(bitwidth=new_type.translated_type.sdn_bitwidth)
            spec = p4t.P4DataTypeSpec(bitstring=p4t.P4BitstringLikeTypeSpec(bit=bits))
    return spec
