"""Assignments and primitive calls to C statements."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from softswitch import model as m
from softswitch.codegen.expressions import Expressions
from softswitch.codegen.headers import HeaderValue
from softswitch.codegen.names import Layout, c_string, field_bounds, identifier, storage
from softswitch.codegen.values import I64, I128, U64, U128, WIDE, Value, convert, ctype_for, literal, low_bits
from softswitch.json_node import ProgramError


class Indices:
    """The C constants that number the program's tables, actions, counters and so on."""

    def __init__(self, program: m.Program, names: Callable[[Sequence[str]], dict[str, str]]) -> None:
        def constants(prefix: str, items: Sequence[str]) -> dict[str, str]:
            return {item: f"{prefix}_{cname}" for item, cname in names(items).items()}

        self.tables = constants("TABLE", list(program.tables))
        self.counters = constants("COUNTER", list(program.counters))
        self.meters = constants("METER", list(program.meters))
        self.registers = constants("REGISTER", list(program.registers))
        self.profiles = constants("PROFILE", list(program.profiles))
        self.value_sets = constants("VALUE_SET", list(program.value_sets))
        self.calculations = {name: f"calc_{c}" for name, c in names(list(program.calculations)).items()}
        taken: set[str] = set()
        seen: set[str] = set()
        self.actions: dict[int, str] = {}
        for ident, action in program.actions.items():
            wanted = f"{action.name}_{ident}" if action.name in seen else action.name
            self.actions[ident] = identifier(wanted, taken)
            seen.add(action.name)


class Statements:
    """Collects the C statements of one function body."""

    def __init__(self, expressions: Expressions, indices: Indices, leave: str = "return;") -> None:
        self.e = expressions
        self.layout: Layout = expressions.layout
        self.indices = indices
        self.lines: list[str] = []
        self.indent = 1
        self.leave = leave  # how the function ends early

    def add(self, line: str) -> None:
        """One line at the current indentation."""
        self.lines.append("    " * self.indent + line if line else "")

    def open(self, line: str) -> None:
        """A line that begins a block."""
        self.add(f"{line} {{" if line else "{")
        self.indent += 1

    def close(self, tail: str = "") -> None:
        """The end of a block."""
        self.indent -= 1
        self.add(f"}}{tail}")

    def trace(self, step: str, *members: tuple[str, str, str]) -> None:
        """Report a step when traced: members are (JSON key, printf format of its value, code of what is printed)."""
        text = "".join(f',"{key}":{form}' for key, form, _ in members)
        code = "".join(f", {value}" for _, _, value in members if value)
        line = '{"step":"' + step + '"' + text + "}"
        self.add(f"SW_T(pkt, {c_string(line)}{code});")

    # ---- assignments ---------------------------------------------------------------------------------------

    def target(self, expr: m.Expr) -> tuple[str, m.FieldType]:
        """The lvalue and type of a field that is assigned to."""
        match expr:
            case m.FieldRef(_, field) if field != "$valid$":
                return self.layout.field(expr), self.e.program.field_type(expr)
            case m.Op("access_field", left, _, _, offset) if left is not None:
                return self._member(self.e.header(left), offset)
            case m.StackField(stack, name):
                header = self.e.last(stack)
                return f"{header.code}.{self.layout.member(header.type.name, name)}", header.type.by_name[name]
        raise self.e.fail("this cannot be assigned to")

    def _member(self, header: HeaderValue, offset: int | None) -> tuple[str, m.FieldType]:
        if offset is None or offset >= len(header.type.fields):
            raise self.e.fail(f"access_field {offset}: {header.type.name} has {len(header.type.fields)} fields")
        f = header.type.fields[offset]
        return f"{header.code}.{self.layout.member(header.type.name, f.name)}", f

    def assign(self, target: m.Expr, source: m.Expr) -> None:
        """target = source, as BMv2's assign: cut to the target's width."""
        if isinstance(target, m.RegisterRef):
            self.write_register(target.register, target.index, source)
            return
        lvalue, f = self.target(target)
        exact = f.signed or f.saturating or f.varbit
        self.store(lvalue, f, self.e.data(source, None if exact else f.width))

    def store(self, lvalue: str, f: m.FieldType, value: Value) -> None:
        """Put a value into a field."""
        if f.varbit:
            self.add(f"w_to_bytes({lvalue}, {lvalue}_bits / 8, {convert(value, WIDE)});")
            return
        limbs = storage(f)[1]
        if f.saturating:
            low = -(1 << (f.width - 1)) if f.signed else 0
            value = self.e.clamped(value, low, (1 << (f.width - (1 if f.signed else 0))) - 1)
        code = self._signed(value, f) if f.signed else low_bits(value, f.width)
        self.add(f"w_store({lvalue}, {limbs}, {code});" if limbs else f"{lvalue} = {code};")

    def _signed(self, value: Value, f: m.FieldType) -> str:
        """A signed field keeps what lies in its bounds and takes the sign from the low bits of what does not."""
        low, high = field_bounds(f)
        bits = f.width + 1
        ctype = I64 if bits <= 64 else I128 if bits <= 128 else WIDE
        if value.low >= low and value.high <= high:
            return convert(value, ctype)
        wider = ctype_for(min(value.low, low), max(value.high, high))
        if wider == WIDE:
            self.e.widths.note(min(value.low, low), max(value.high, high))
        helper = {I64: "sw_keep_i64", I128: "sw_keep_i128", WIDE: "w_keep"}[wider]
        code = f"{helper}({convert(value, wider)}, {literal(low, wider)}, {literal(high, wider)}, {f.width})"
        return convert(Value(code, low, high, wider), ctype)

    def assign_varbit(self, target: m.Expr, source: m.Expr) -> None:
        """A varbit field takes the other's length and bytes."""
        (dst, f), (src, g) = self.target(target), self.target(source)
        if not f.varbit or not g.varbit:
            raise self.e.fail("assign_VL is between two varbit fields")
        size = min(f.width, g.width) // 8
        self.add(f"{dst}_bits = (uint32_t)sw_clamp_u64({src}_bits, 0, {size * 8});")
        self.add(f"memmove({dst}, {src}, {dst}_bits / 8);")

    # ---- headers -------------------------------------------------------------------------------------------

    def set_valid(self, header: HeaderValue) -> None:
        """The header becomes valid, the others of its union invalid."""
        self.add(f"{header.code}.valid = 1;")
        for sibling in header.siblings:
            self.add(f"{sibling}.valid = 0;")

    def add_header(self, header: HeaderValue) -> None:
        """setValid(): a header that was invalid starts as zeros; a varbit field keeps its length, as in BMv2."""
        self.open(f"if (!{header.valid})")
        if header.varbit_name:
            self.add(f"uint32_t length = {header.code}.{header.varbit_name}_bits;")
        self.add(f"memset(&{header.code}, 0, sizeof({header.code}));")
        if header.varbit_name:
            self.add(f"{header.code}.{header.varbit_name}_bits = length;")
        self.set_valid(header)
        self.add(f"pkt->packet_length += {header.nbytes};")
        self.close()

    def remove_header(self, header: HeaderValue) -> None:
        """setInvalid()."""
        self.open(f"if ({header.valid})")
        self.add(f"pkt->packet_length -= {header.nbytes};")
        self.add(f"{header.code}.valid = 0;")
        self.close()

    def assign_header(self, dst: HeaderValue, src: HeaderValue) -> None:
        """Validity and, where valid, every field."""
        if dst.type != src.type:
            raise self.e.fail(f"assignment of a {src.type.name} to a {dst.type.name}")
        if dst.code == src.code:
            return
        self.open(f"if ({src.valid})")
        self.add(f"{dst.code} = {src.code};")
        self.set_valid(dst)
        self.indent -= 1
        self.add("} else {")
        self.indent += 1
        self.add(f"{dst.code}.valid = 0;")
        self.close()

    def assign_headers(self, dst: list[HeaderValue], src: list[HeaderValue]) -> None:
        """Element by element."""
        if len(dst) != len(src):
            raise self.e.fail(f"assignment of {len(src)} headers to {len(dst)}")
        for d, s in zip(dst, src, strict=True):
            self.assign_header(d, s)

    def assign_stack(self, dst: m.Expr, src: m.Expr) -> None:
        """A header stack or a stack of unions."""
        match dst, src:
            case m.Named("header_stack", a), m.Named("header_stack", b):
                stacks = self.e.program.stacks
                headers = [[self.e.header(m.Named("header", h)) for h in stacks[s].headers] for s in (a, b)]
            case m.Named("header_union_stack", a), m.Named("header_union_stack", b):
                unions = self.e.program.union_stacks
                headers = [
                    [h for u in unions[s].unions for h in self.e.union_members(m.Named("header_union", u))]
                    for s in (a, b)
                ]
            case _:
                raise self.e.fail("this assigns two stacks of different kinds")
        self.add(f"{self.layout.next[a]} = {self.layout.next[b]};")
        self.assign_headers(headers[0], headers[1])

    def shift_stack(self, op: str, stack: m.Expr, count: m.Expr) -> None:
        """push_front and pop_front. BMv2 leaves the validity of a union that is shifted in or out as it was."""
        n = convert(self.e.data(count), U64)
        match stack:
            case m.Named("header_stack", name):
                cname, column = self.layout.arrays[name]
                self.add(f"SW_STACK_{op.upper()}(phv->{cname}, {len(column)}, {self.layout.next[name]}, {n});")
                return
            case m.Named("header_union_stack", name):
                for member in self.e.union_stack_members(name):
                    cname, column = self.layout.arrays[f"{name}.{member}"]
                    self.add(f"SW_UNIONS_{op.upper()}(phv->{cname}, {len(column)}, {n});")
                self.add(f"SW_NEXT_{op.upper()}({self.layout.next[name]}, {len(column)}, {n});")
                return
        raise self.e.fail(f"{op} needs a header stack")

    # ---- state ---------------------------------------------------------------------------------------------

    def _array(self, expr: m.Expr, kind: str) -> str:
        match expr:
            case m.Named(k, name) if k == kind:
                return name
        raise self.e.fail(f"a {kind.replace('_', ' ')} is wanted here")

    def _index(self, expr: m.Expr) -> str:
        return f"(uint32_t)({low_bits(self.e.data(expr, 32), 32)})"

    def count(self, counter: m.Expr, index: m.Expr) -> None:
        """counter.count(index)."""
        name = self.indices.counters[self._array(counter, "counter_array")]
        self.add(f"sw_count(pkt, {name}, {self._index(index)});")

    def meter(self, meter: m.Expr, index: m.Expr, target: m.Expr) -> None:
        """meter.execute_meter(index, target); out of range leaves the target alone."""
        name = self._array(meter, "meter_array")
        self.open("")
        self.add(f"uint32_t index = {self._index(index)};")
        self.add(f"uint32_t color = sw_meter_run(pkt, {self.indices.meters[name]}, index);")
        self.open(f"if (index < {self.e.program.meters[name].size})")
        self.store(*self.target(target), Value("(uint64_t)color", 0, 2, U64))
        self.close()
        self.close()

    def read_register(self, target: m.Expr, register: m.Expr, index: m.Expr) -> None:
        """register.read(target, index); out of range leaves the target alone."""
        name = self._array(register, "register_array")
        width = self.e.program.registers[name].width
        self.open("")
        self.add(f"const void *cell = sw_register_cell(pkt, {self.indices.registers[name]}, {self._index(index)});")
        if width > 128:
            self.e.widths.note(0, (1 << width) - 1)
            value = Value(f"w_load(cell, {(width + 63) // 64})", 0, (1 << width) - 1, WIDE)
        else:
            ctype = U64 if width <= 64 else U128
            value = Value(f"*(const {ctype} *)cell", 0, (1 << width) - 1, ctype)
        self.open("if (cell)")
        self.store(*self.target(target), value)
        self.close()
        self.close()

    def write_register(self, name: str, index: m.Expr, source: m.Expr) -> None:
        """register.write(index, source)."""
        width = self.e.program.registers[name].width
        code = low_bits(self.e.data(source, width), width)
        self.open("")
        self.add(f"void *cell = sw_register_cell(pkt, {self.indices.registers[name]}, {self._index(index)});")
        if width > 128:
            self.open("if (cell)")
            self.add(f"w_store(cell, {(width + 63) // 64}, {code});")
            self.close()
        else:
            self.add("if (cell)")
            self.add(f"    *({U64 if width <= 64 else U128} *)cell = {code};")
        self.close()

    # ---- primitives ----------------------------------------------------------------------------------------

    def primitive(self, p: m.Primitive) -> None:
        """Any primitive but _jump and _jump_if_zero."""
        a = p.args
        arity, emit = self._table().get(p.op, (-1, None))
        if emit is None:
            raise ProgramError(p.path, f"primitive {p.op!r} is not supported")
        if len(a) != arity:
            raise ProgramError(p.path, f"primitive {p.op!r} takes {arity} parameters, not {len(a)}")
        emit(p, *a)

    def _table(self) -> dict[str, tuple[int, Callable[..., None]]]:
        e, header = self.e, self.e.header
        return {
            "assign": (2, lambda p, d, s: self.assign(d, s)),
            "modify_field": (2, lambda p, d, s: self.assign(d, s)),
            "assign_VL": (2, lambda p, d, s: self.assign_varbit(d, s)),
            "assign_header": (2, lambda p, d, s: self.assign_header(header(d), header(s))),
            "copy_header": (2, lambda p, d, s: self.assign_header(header(d), header(s))),
            "assign_union": (2, lambda p, d, s: self.assign_headers(e.union_members(d), e.union_members(s))),
            "assign_header_stack": (2, lambda p, d, s: self.assign_stack(d, s)),
            "assign_union_stack": (2, lambda p, d, s: self.assign_stack(d, s)),
            "push": (2, lambda p, s, n: self.shift_stack("push", s, n)),
            "pop": (2, lambda p, s, n: self.shift_stack("pop", s, n)),
            "add_header": (1, lambda p, h: self.add_header(header(h))),
            "remove_header": (1, lambda p, h: self.remove_header(header(h))),
            "no_op": (0, lambda p: None),
            "exit": (0, lambda p: self.add("pkt->exited = true;")),
            "drop": (0, lambda p: self.add("v1_mark_to_drop(pkt, phv);")),
            "mark_to_drop": (1, self._mark_to_drop),
            "count": (2, lambda p, c, i: self.count(c, i)),
            "execute_meter": (3, lambda p, c, i, d: self.meter(c, i, d)),
            "register_read": (3, lambda p, d, r, i: self.read_register(d, r, i)),
            "register_write": (
                3, lambda p, r, i, s: self.write_register(self._array(r, "register_array"), i, s)
            ),
            "truncate": (1, lambda p, n: self.add(f"v1_truncate(pkt, {low_bits(e.data(n, 64), 64)});")),
            "clone_ingress_pkt_to_egress": (2, lambda p, s, f: self._clone(s, f)),
            "clone_egress_pkt_to_egress": (2, lambda p, s, f: self._clone(s, f)),
            "resubmit": (1, lambda p, f: self.add(f"pkt->resubmit = (uint16_t){self._index(f)};")),
            "recirculate": (1, lambda p, f: self.add(f"pkt->recirculate = (uint16_t){self._index(f)};")),
            "generate_digest": (2, lambda p, r, i: self.add(f"pkt->digest = (uint16_t){self._index(i)};")),
            "modify_field_rng_uniform": (3, lambda p, d, a, b: self._random(d, a, b)),
            "modify_field_with_hash_based_offset": (4, lambda p, d, b, c, n: self._hash(d, b, c, n)),
            "assert": (1, lambda p, x: self._assertion(p, x)),
            "assume": (1, lambda p, x: self._assertion(p, x)),
            "log_msg": (2, self._log),
        }  # fmt: skip

    def _mark_to_drop(self, p: m.Primitive, target: m.Expr) -> None:
        """The header is standard_metadata, or a copy of it where p4c made one for an action's parameter."""
        if not isinstance(target, m.Named) or target.name not in self.layout.program.headers:
            raise ProgramError(p.path, "mark_to_drop needs a header")
        fields = self.layout.program.headers[target.name].type.by_name
        for field, value in (("egress_spec", "pkt->dev->cfg.drop_port"), ("mcast_grp", "0")):
            if field in fields:
                self.store(*self.target(m.FieldRef(target.name, field)), Value(value, 0, 511, U64))

    def _clone(self, session: m.Expr, fields: m.Expr) -> None:
        self.add(f"pkt->clone_session = (uint16_t)({self._index(session)} | 0x8000u);")
        self.add(f"pkt->clone_fields = (uint16_t){self._index(fields)};")

    def _random(self, target: m.Expr, low: m.Expr, high: m.Expr) -> None:
        self.open("")
        self.add(f"uint64_t low = {low_bits(self.e.data(low, 64), 64)}, high = {low_bits(self.e.data(high, 64), 64)};")
        self.open("if (low <= high)")
        self.store(*self.target(target), Value("sw_random_between(pkt, low, high)", 0, (1 << 64) - 1, U64))
        self.close()
        self.close()

    def _hash(self, target: m.Expr, base: m.Expr, calculation: m.Expr, size: m.Expr) -> None:
        name = self.indices.calculations[self._array(calculation, "calculation")]
        offset, limit = (low_bits(self.e.data(x, 64), 64) for x in (base, size))
        code = f"sw_hash_offset({name}(pkt, phv), {offset}, {limit})"
        self.store(*self.target(target), Value(code, 0, (1 << 64) - 1, U64))

    def _assertion(self, p: m.Primitive, condition: m.Expr) -> None:
        self.open(f"if (!({self.e.boolean(condition)}))")
        self.add(f"v1_assertion_failed(pkt, phv, {c_string(f'{p.op} failed: {p.source or p.path}')});")
        self.add(self.leave)
        self.close()

    def _log(self, p: m.Primitive, text: m.Expr, values: m.Expr) -> None:
        if not isinstance(text, m.Text) or not isinstance(values, m.Vector):
            raise ProgramError(p.path, "log_msg takes a string and a vector of values")
        parts = re.split(r"(?<!\\)\{.*?(?<!\\)\}", text.value)
        if len(parts) - 1 != len(values.items):
            raise ProgramError(p.path, f"log_msg has {len(parts) - 1} braces and {len(values.items)} values")
        literals = [s.replace("\\{", "{").replace("\\}", "}").replace("%", "%%") for s in parts]
        args: list[str] = []
        for item in values.items:
            value = self.e.data(item)
            if value.ctype == WIDE:
                raise ProgramError(p.path, "log_msg of a number wider than 128 bits is not supported")
            sign = int(value.ctype in (I64, I128))
            args.append(f", sw_decimal((char[48]){{0}}, {convert(value, I128 if sign else U128)}, {sign})")
        self.add(f"sw_log(pkt, {c_string('%s'.join(literals))}{''.join(args)});")
