"""The parser to C: one function a state.

A state function reads from ``pkt->buf + pkt->off + *pos``, moves ``*pos`` and returns the next state, or PARSE_ERROR
after setting ``pkt->parser_error``. What was extracted before an error stays, as in BMv2.
"""

from __future__ import annotations

from softswitch import model as m
from softswitch.codegen.expressions import Expressions
from softswitch.codegen.headers import HeaderValue
from softswitch.codegen.names import Layout, c_json, comment, unique
from softswitch.codegen.statements import Indices, Statements
from softswitch.codegen.values import I64, I128, U64, U128, WIDE, Value, Widths, convert, low_bits


class ParserGenerator:
    """Makes the parser of one program."""

    def __init__(self, layout: Layout, widths: Widths, indices: Indices) -> None:
        self.layout, self.widths, self.indices = layout, widths, indices
        self.program = layout.program
        self.states = unique(self.program.parser.states)

    def generate(self) -> list[str]:
        """All state functions and ``parse``."""
        parser = self.program.parser
        names = ["PARSE_ACCEPT", "PARSE_ERROR", *(f"STATE_{c}" for c in self.states.values())]
        lines = [f"enum {{ {', '.join(names)} }};", ""]
        for state in parser.states.values():
            lines += self._state(state)
        return lines + self._loop()

    def _loop(self) -> list[str]:
        """``parse``: from state to state."""
        parser, errors = self.program.parser, self.program.errors
        body = Statements(Expressions(self.layout, self.widths, self.indices.registers, "parsers[0]"), self.indices)
        body.add("uint32_t pos = 0, steps = 0;")
        body.add("pkt->checksum_error = false;")
        body.add(f"pkt->parser_error = {errors['NoError']};")
        body.add(f"int state = {self._next(parser.start)};")
        body.open("while (state > PARSE_ERROR)")
        body.open("if (++steps > SW_PARSER_STEPS)")
        body.add(f"pkt->parser_error = {errors['ParserTimeout']};")
        body.add("break;")
        body.close()
        body.open("switch (state)")
        for cname in self.states.values():
            body.add(f"case STATE_{cname}:")
            body.add(f"    state = state_{cname}(pkt, phv, &pos);")
            body.add("    break;")
        body.add("default:")
        body.add("    state = PARSE_ACCEPT;")
        body.close()
        body.close()
        body.open(f"if (pkt->parser_error != {errors['NoError']})")
        body.add("pkt->dev->stats.parser_errors++;")
        body.trace("parser_error", ("error", "%u", "pkt->parser_error"))
        body.close()
        body.add("pkt->off += pos;")
        body.add("pkt->len -= pos;")
        return ["static void parse(sw_pkt *pkt, phv_t *phv)", "{", "    (void)phv;", *body.lines, "}", ""]

    def _state(self, state: m.ParserState) -> list[str]:
        expressions = Expressions(self.layout, self.widths, self.indices.registers, state.path)
        body = Statements(expressions, self.indices, "return PARSE_ACCEPT;")
        body.trace("parser_state", ("name", "%s", c_json(state.name)))
        for op in state.ops:
            body.e.path = op.path
            self._op(body, op)
        body.e.path = state.path
        self._transitions(body, state)
        cname = self.states[state.name]
        head = [f"static int state_{cname}(sw_pkt *pkt, phv_t *phv, uint32_t *pos) /* {comment(state.name)} */", "{"]
        return [*head, "    (void)pkt, (void)phv, (void)pos;", *body.lines, "}", ""]

    # ---- operations ----------------------------------------------------------------------------------------

    def _error(self, body: Statements, condition: str, error: str) -> None:
        body.open(f"if ({condition})")
        body.add(f"pkt->parser_error = {self.program.errors[error]}; /* {error} */")
        body.add("return PARSE_ERROR;")
        body.close()

    def _op(self, body: Statements, op: m.ParserOp) -> None:
        match op.op:
            case "extract" | "extract_VL":
                assert op.target is not None
                self._extract(body, op.target, op.value)
            case "set":
                assert isinstance(op.target, m.FieldRef) and op.value is not None
                self._set(body, op.target, op.value)
            case "verify":
                assert op.value is not None and not isinstance(op.target, m.UnionMember) and op.target is not None
                body.open(f"if (!({body.e.boolean(op.target)}))")
                body.add(f"pkt->parser_error = (uint32_t){low_bits(body.e.data(op.value, 32), 32)};")
                body.add("return PARSE_ERROR;")
                body.close()
            case "advance":
                assert op.value is not None
                self._advance(body, op.value)
            case "primitive":
                assert op.call is not None
                if op.call.op in ("_jump", "_jump_if_zero"):
                    raise body.e.fail("a jump in a parser state is not supported")
                body.primitive(op.call)

    def _extract(self, body: Statements, target: m.Expr | m.UnionMember, length: m.Expr | None) -> None:
        body.open("")
        header, pushed = self._extract_target(body, target)
        fixed = header.type.fixed_bits // 8
        data = "const uint8_t *p = pkt->buf + pkt->off + *pos;"
        if length is None:
            self._error(body, f"pkt->len - *pos < {fixed}", "PacketTooShort")
            body.add(data)
            self._fields(body, header, header.type.fields, 0)
            size = str(fixed)
        else:
            size = self._extract_varbit(body, header, length, fixed, data)
        body.set_valid(header)
        body.add(f"*pos += {size};")
        if pushed:
            body.add(f"{pushed}++;")
        body.trace("extract", ("header", "%s", c_json(_target_name(target))), ("bytes", "%u", f"(unsigned)({size})"))
        body.close()

    def _extract_varbit(self, body: Statements, header: HeaderValue, length: m.Expr, fixed: int, data: str) -> str:
        value = body.e.data(length)
        ctype = {I64: I64, I128: I128}.get(value.ctype, U64 if value.ctype == U64 else U128)
        body.add(f"{ctype} bits = {convert(value, ctype)};")
        self._error(body, "bits % 8 != 0", "ParserInvalidArgument")
        negative = "bits < 0 || " if ctype in (I64, I128) else ""
        self._error(body, f"{negative}bits / 8 > SW_PACKET_MAX || pkt->len - *pos < {fixed} + (uint32_t)(bits / 8)",
                    "PacketTooShort")  # fmt: skip
        varbit = header.type.varbit
        assert varbit is not None
        self._error(body, f"bits > {varbit.width}", "HeaderTooShort")
        body.add(data)
        body.add("uint32_t n = (uint32_t)(bits / 8);")
        where = header.type.fields.index(varbit)
        before, after = header.type.fields[:where], header.type.fields[where + 1 :]
        start = sum(f.width for f in before)
        self._fields(body, header, before, 0)
        body.add(f"memcpy({header.code}.{header.varbit_name}, p + {start // 8}, n);")
        body.add(f"{header.code}.{header.varbit_name}_bits = 8 * n;")
        if after:
            body.add("p += n;")
            self._fields(body, header, after, start)
        return f"{fixed} + n"

    def _extract_target(self, body: Statements, target: m.Expr | m.UnionMember) -> tuple[HeaderValue, str]:
        """The header to fill, and the ``next`` counter of its stack ("" if it is in none)."""
        match target:
            case m.Named("header_stack", stack):
                next_index = self.layout.next[stack]
                size = len(self.program.stacks[stack].headers)
                self._error(body, f"{next_index} >= {size}", "StackOutOfBounds")
                return body.e.array_element(stack, next_index), next_index
            case m.UnionMember(stack, member):
                next_index = self.layout.next[stack]
                size = len(self.program.union_stacks[stack].unions)
                self._error(body, f"{next_index} >= {size}", "StackOutOfBounds")
                return body.e.union_stack_element(stack, member, next_index), next_index
            case _:
                return body.e.header(target), ""

    def _fields(self, body: Statements, header: HeaderValue, fields: tuple[m.FieldType, ...], bit: int) -> None:
        """Loads of consecutive fields from ``p``, the first of which starts ``bit`` bits after it."""
        for f in fields:
            body.store(f"{header.code}.{self.layout.fields[header.type.name][f.name]}", plain(f), load(f, "p", bit))
            bit += f.width

    def _set(self, body: Statements, target: m.FieldRef, source: m.Expr) -> None:
        lvalue, f = body.target(target)
        if isinstance(source, m.Lookahead):
            body.open("")
            self._error(body, f"pkt->len - *pos < {(source.offset + source.width + 7) // 8}", "PacketTooShort")
            body.add("const uint8_t *p = pkt->buf + pkt->off + *pos;")
            field = m.FieldType("", source.width, signed=f.signed and f.width == source.width)
            body.store(lvalue, f, load(field, "p", source.offset))
            body.close()
        elif f.varbit:
            body.assign_varbit(target, source)
        else:
            body.assign(target, source)

    def _advance(self, body: Statements, amount: m.Expr) -> None:
        value = body.e.data(amount)
        if value.ctype == WIDE:
            raise body.e.fail("advance by a number wider than 128 bits is not supported")
        body.open("")
        body.add(f"{value.ctype} bits = {value.code};")
        self._error(body, "bits % 8 != 0", "ParserInvalidArgument")
        negative = "bits < 0 || " if value.low < 0 else ""
        self._error(body, f"{negative}bits / 8 > pkt->len - *pos", "PacketTooShort")
        body.add("*pos += (uint32_t)(bits / 8);")
        body.close()

    # ---- transitions ---------------------------------------------------------------------------------------

    def _next(self, name: str | None) -> str:
        return "PARSE_ACCEPT" if name is None else f"STATE_{self.states[name]}"

    def _transitions(self, body: Statements, state: m.ParserState) -> None:
        default = next((t for t in reversed(state.transitions) if t.kind == "default"), None)
        final = self._next(default.next_state if default else None)
        if not state.key:
            body.add(f"return {final};")
            return
        keys = self._keys(body, state)
        for t in state.transitions:
            if t.kind == "value":
                body.add(f"if ({self._matches(body, keys, t)})")
                body.add(f"    return {self._next(t.next_state)};")
            elif t.kind == "value_set":
                self._value_set(body, keys, t)
        body.add(f"return {final};")

    def _keys(self, body: Statements, state: m.ParserState) -> list[tuple[Value, int]]:
        """Locals k0, k1, ... with the key's parts and their widths."""
        keys: list[tuple[Value, int]] = []
        for i, part in enumerate(state.key):
            if isinstance(part, m.Lookahead):
                end = (part.offset + part.width + 7) // 8
                self._error(body, f"pkt->len - *pos < {end}", "PacketTooShort")
                value = load(m.FieldType("", part.width), "(pkt->buf + pkt->off + *pos)", part.offset)
                width = part.width
            elif isinstance(part, m.FieldRef) and part.field == "$valid$":
                header = body.e.header(m.Named("header", part.header))
                value, width = Value(f"(uint64_t){header.valid}", 0, 1, U64), 1
            else:
                value = body.e.data(part)
                width = _width(self.program, part)
            ctype = U64 if width <= 64 else U128 if width <= 128 else WIDE
            if ctype == WIDE:
                self.widths.note(0, (1 << width) - 1)
            body.add(f"{ctype} k{i} = {low_bits(value, width)};")
            keys.append((Value(f"k{i}", 0, (1 << width) - 1, ctype), width))
        return keys

    def _matches(self, body: Statements, keys: list[tuple[Value, int]], t: m.Transition) -> str:
        tests: list[str] = []
        for (key, width), want, mask in zip(keys, t.values, t.masks, strict=True):
            full = (1 << width) - 1
            if mask & full == 0:
                if want & mask:
                    return "0"
                continue
            if want & mask & ~full:
                return "0"
            if key.ctype == WIDE:
                masked = key.code
                if mask & full != full:
                    masked = f"w_and({masked}, {convert(body.e.data(m.Const(mask & full)), WIDE)})"
                value = convert(body.e.data(m.Const(want & mask)), WIDE)
                tests.append(f"w_cmp({masked}, {value}) == 0")
                continue
            value = body.e.data(m.Const(want & mask)).code
            masked = key.code if mask & full == full else f"({key.code} & {body.e.data(m.Const(mask & full)).code})"
            tests.append(f"{masked} == {value}")
        return " && ".join(tests) or "1"

    def _value_set(self, body: Statements, keys: list[tuple[Value, int]], t: m.Transition) -> None:
        total = sum(width for _, width in keys)
        nbytes = (total + 7) // 8
        body.open("")
        body.add(f"uint8_t value[{nbytes}] = {{0}};")
        body.add(f"sw_writer w = {{value, {8 * nbytes - total}}};")
        for key, width in keys:
            for piece, bits in pieces(key, width):
                body.add(f"sw_put(&w, {piece}, {bits});")
        body.add(f"if (sw_value_set_has(pkt->dev, {self.indices.value_sets[t.value_set]}, value))")
        body.add(f"    return {self._next(t.next_state)};")
        body.close()


def load(f: m.FieldType, p: str, bit: int) -> Value:
    """A field's bits, ``bit`` bits after ``p``; the caller has checked the length."""
    width = f.width
    p = f"{p} + {bit // 8}" if bit >= 8 else p
    bit %= 8
    high = (1 << width) - 1
    if width <= 64:
        nbytes = (bit + width + 7) // 8
        if bit == 0 and width % 8 == 0:
            value = Value(f"sw_ld({p}, {nbytes})", 0, high, U64)
        else:
            value = Value(f"sw_bits({p}, {bit}, {width})", 0, high, U64)
    elif width <= 128:
        value = Value(f"sw_bits128({p}, {bit}, {width})", 0, high, U128)
    else:
        return Value(f"{'w_sext(' if f.signed else ''}w_bits({p}, {bit}, {width}){f', {width})' if f.signed else ''}",
                     -(1 << (width - 1)) if f.signed else 0, high, WIDE)  # fmt: skip
    if not f.signed:
        return value
    helper, ctype = ("sw_sext", I64) if width <= 64 else ("sw_sext128", I128)
    return Value(f"{helper}({value.code}, {width})", -(1 << (width - 1)), (1 << (width - 1)) - 1, ctype)


def pieces(value: Value, width: int) -> list[tuple[str, int]]:
    """The value's bits from the top, in chunks of at most 64: (code, bits)."""
    if width <= 64:
        return [(convert(value, U64), width)]
    if value.ctype != WIDE:
        code = convert(value, U128)
        return [(f"(uint64_t)(({code}) >> 64)", width - 64), (f"(uint64_t)({code})", 64)]
    top = (width - 1) // 64
    return [(f"{value.code}.l[{i}]", width - 64 * i if i == top else 64) for i in range(top, -1, -1)]


def plain(f: m.FieldType) -> m.FieldType:
    """The field without saturation: what is extracted always fits."""
    return m.FieldType(f.name, f.width, f.signed)


def _width(program: m.Program, part: m.Expr) -> int:
    match part:
        case m.FieldRef():
            return program.field_type(part).width
        case m.StackField(stack, field):
            return program.stacks[stack].type.by_name[field].width
        case m.UnionStackField(stack, member, field):
            union = program.unions[program.union_stacks[stack].unions[0]]
            header = program.headers[union.headers[union.members.index(member)]]
            return header.type.by_name[field].width
    raise AssertionError(part)


def _target_name(target: m.Expr | m.UnionMember) -> str:
    match target:
        case m.UnionMember(stack, member):
            return f"{stack}.next.{member}"
        case m.Named("header_stack", name):
            return f"{name}.next"
        case m.Named(_, name):
            return name
    raise AssertionError(target)

