"""For tests: what stands in headers that are not valid is nobody's promise."""

from __future__ import annotations

from itertools import count

from softswitch import model as m
from softswitch.codegen.names import Layout, storage


def fill_invalid_headers(program: m.Program, layout: Layout) -> list[str]:
    """A function that fills the fields of invalid headers; see SW_UNSPECIFIED in runtime/v1model.h."""
    lines = ["#if SW_UNSPECIFIED", "static void fill_invalid_headers(phv_t *phv)", "{", "    (void)phv;"]
    number = count()
    for header in program.headers.values():
        if header.metadata:
            continue
        lines.append(f"    if (!{layout.header(header.name)}.valid) {{")
        for f in header.type.fields:
            lines += _fill(layout.field(m.FieldRef(header.name, f.name)), f, next(number))
        lines.append("    }")
    return [*lines, "}", "#endif", ""]


def _fill(lvalue: str, f: m.FieldType, number: int) -> list[str]:
    """Assignments. A signed field gets no more than fits its positive part."""
    fill, width = f"SW_FILL({number})", f.width - 1 if f.signed else f.width
    if f.varbit:
        return [f"        {lvalue}_bits = 8;", f"        {lvalue}[0] = (uint8_t){fill};"] if f.width >= 8 else []
    limbs = storage(f)[1]
    if not limbs:
        wide = f"(u128){fill} << 64 | {fill}" if width > 64 else fill
        return [f"        {lvalue} = ({wide}) & ((u128)-1 >> {128 - width});"]
    parts = ((i, min(width - 64 * i, 64)) for i in range(limbs))
    return [f"        {lvalue}[{i}] = {fill if bits > 0 else 0} & (~0ULL >> {64 - max(bits, 1)});" for i, bits in parts]
