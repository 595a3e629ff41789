"""C identifiers for the program's names, and the shape of the PHV: the struct of all headers and metadata.

Each header type becomes a struct with one member a field, in native integers, and its validity. Elements of a stack
(and of a union stack, member by member) are arrays with one more element behind the last: an index out of range
falls on it, and it is never valid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from softswitch import model as m
from softswitch.codegen.values import I64, I128, U64, U128, WIDE

KEYWORDS = frozenset(
    (
        "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern",
        "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed",
        "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while",
        "valid", "bits", "phv", "pkt", "wide", "bool", "true", "false", "asm", "typeof", "linux", "unix",
        "sched_priority",
    )
)  # fmt: skip


def identifier(name: str, taken: set[str]) -> str:
    """A C identifier for a P4 name that none of ``taken`` has; adds it there."""
    base = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "x"
    if base[0].isdigit() or base in KEYWORDS or base.isupper():  # capitals may be a macro
        base = f"p4_{base}"
    result, n = base, 2
    while result in taken:
        result, n = f"{base}_{n}", n + 1
    taken.add(result)
    return result


def c_string(text: str) -> str:
    """A C string literal."""
    escapes = {0x22: '\\"', 0x5C: "\\\\", 0x3F: "\\?"}  # "?" could begin a trigraph
    plain = text.encode("utf-8", "replace")
    return '"' + "".join(escapes.get(b, chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in plain) + '"'


def comment(text: str) -> str:
    """Text that stays within a C comment, on one line."""
    return re.sub(r"[^ -~]", "?", text).replace("*/", "* /").replace("/*", "/ *")


def c_json(text: str) -> str:
    """A C string literal whose text is a JSON string, for traces."""
    return c_string(json.dumps(text))


def unique(names: Iterable[str]) -> dict[str, str]:
    """C identifiers for all of these, by name."""
    taken: set[str] = set()
    return {name: identifier(name, taken) for name in names}


def param_names(action: m.Action) -> list[str]:
    """The members of an action's args struct."""
    taken = {"end"}
    return [identifier(p.name, taken) for p in action.params]


def _members(header_type: m.HeaderType) -> dict[str, str]:
    """The members of a header type's struct by field. A varbit field's length has a member of its own."""
    taken: set[str] = set()
    members: dict[str, str] = {}
    for f in sorted(header_type.fields, key=lambda f: not f.varbit):
        members[f.name] = identifier(f.name, taken)
        if f.varbit:
            taken.add(f"{members[f.name]}_bits")
    return members


def storage(f: m.FieldType) -> tuple[str, int]:
    """C type of a field's member and its number of limbs (0: a native integer).

    A signed field of width W holds -2**(W-1) .. 2**W - 1: BMv2 keeps a value up to 2**W - 1 as it is.
    """
    bits = f.width + (1 if f.signed else 0)
    for size in (8, 16, 32, 64):
        if bits <= size:
            return f"{'' if f.signed else 'u'}int{size}_t", 0
    if bits <= 128:
        return ("i128" if f.signed else "u128"), 0
    return "uint64_t", (bits + 63) // 64


def field_bounds(f: m.FieldType) -> tuple[int, int]:
    """The interval of what a field can hold."""
    return (-(1 << (f.width - 1)) if f.signed else 0), (1 << f.width) - 1


def loaded_type(f: m.FieldType) -> str:
    """The C type that a field is computed with."""
    if f.varbit or storage(f)[1]:
        return WIDE
    bits = f.width + (1 if f.signed else 0)
    if f.signed:
        return I64 if bits <= 64 else I128
    return U64 if bits <= 64 else U128


class Layout:
    """Where every header, stack and union of a program lies in the PHV."""

    def __init__(self, program: m.Program) -> None:
        self.program = program
        self.types = unique(t.name for t in program.header_types)
        self.fields = {t.name: _members(t) for t in program.header_types}
        self._union_of = {h: u for u in program.unions.values() for h in u.headers}
        arrays: dict[str, list[str]] = {s.name: list(s.headers) for s in program.stacks.values()}
        for stack in program.union_stacks.values():
            columns = zip(*(program.unions[u].headers for u in stack.unions), strict=True)
            for member, column in zip(program.unions[stack.unions[0]].members, columns, strict=True):
                arrays[f"{stack.name}.{member}"] = list(column)
        in_array = {h for column in arrays.values() for h in column}
        singles = [h for h in program.headers if h not in in_array]
        names = unique([*arrays, *singles, *(f"next {s}" for s in (*program.stacks, *program.union_stacks))])
        self.arrays = {name: (names[name], column) for name, column in arrays.items()}
        self.next = {s: f"phv->{names[f'next {s}']}" for s in (*program.stacks, *program.union_stacks)}
        self._lvalues = {h: f"phv->{names[h]}" for h in singles}
        for cname, elements in self.arrays.values():
            self._lvalues.update({h: f"phv->{cname}[{i}]" for i, h in enumerate(elements)})
        self.singles = {h: names[h] for h in singles}

    def header(self, name: str) -> str:
        """The lvalue of a header instance."""
        return self._lvalues[name]

    def member(self, type_name: str, field: str) -> str:
        """The struct member of a field."""
        return "valid" if field == "$valid$" else self.fields[type_name][field]

    def field(self, ref: m.FieldRef) -> str:
        """The lvalue of a field."""
        return f"{self.header(ref.header)}.{self.member(self.program.headers[ref.header].type.name, ref.field)}"

    def siblings(self, header: str) -> list[str]:
        """The other members of the header's union."""
        union = self._union_of.get(header)
        return [h for h in union.headers if h != header] if union else []

    def element(self, array: str, index: str) -> str:
        """The lvalue of an array's element at a computed index; out of range gives the spare element."""
        cname, column = self.arrays[array]
        return f"phv->{cname}[{clamp(index, len(column))}]"


def clamp(index: str, size: int) -> str:
    """Code of an index within an array of ``size`` elements and a spare one."""
    return f"sw_index({index}, {size})"


def declare_phv(layout: Layout) -> list[str]:
    """The struct of every header type and of the PHV, as C lines. Metadata comes first and is cleared in one go."""
    program = layout.program
    lines: list[str] = []
    for t in program.header_types:
        lines.append(f"struct {layout.types[t.name]} {{ /* {comment(t.name)} */")
        for f in t.fields:
            name = layout.fields[t.name][f.name]
            if f.varbit:
                lines += [f"    uint32_t {name}_bits; /* varbit<{f.width}> */", f"    uint8_t {name}[{f.width // 8}];"]
                continue
            ctype, limbs = storage(f)
            kind = f"{'int' if f.signed else 'bit'}<{f.width}>"
            lines.append(f"    {ctype} {name}{f'[{limbs}]' if limbs else ''}; /* {kind} */")
        lines += ["    uint8_t valid;", "};", ""]
    lines.append("typedef struct phv {")
    metadata = [h for h in layout.singles if program.headers[h].metadata]
    for h in metadata:
        lines.append(f"    struct {layout.types[program.headers[h].type.name]} {layout.singles[h]};")
    lines.append("    uint8_t end_of_metadata;")
    for h in layout.singles:
        if h not in metadata:
            lines.append(f"    struct {layout.types[program.headers[h].type.name]} {layout.singles[h]};")
    for cname, column in layout.arrays.values():
        type_name = layout.types[program.headers[column[0]].type.name]
        lines.append(f"    struct {type_name} {cname}[{len(column) + 1}];")
    lines += [f"    uint32_t {lvalue.removeprefix('phv->')}; /* elements in use */" for lvalue in layout.next.values()]
    return [*lines, "} phv_t;", ""]
