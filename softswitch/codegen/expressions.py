"""Expressions to C."""

from __future__ import annotations

from softswitch import model as m
from softswitch.codegen.headers import Headers, HeaderValue, some
from softswitch.codegen.names import field_bounds, loaded_type, param_names, storage
from softswitch.codegen.values import (
    I64,
    I128,
    MAX_BITS,
    U64,
    U128,
    WIDE,
    Value,
    bits_of,
    const,
    convert,
    ctype_for,
    literal,
    low_bits,
    modular_type,
)
from softswitch.json_node import ProgramError

ARITH = {"+": "w_add", "-": "w_sub", "*": "w_mul"}
BITWISE = {"&": "w_and", "|": "w_or", "^": "w_xor"}
COMPARE = {"==", "!=", "<", "<=", ">", ">="}
BOOLEAN = COMPARE | {"and", "or", "not", "valid", "valid_union", "d2b"}


class Expressions(Headers):
    """Turns numbers and conditions of one place (an action, a parser state, ...) into C."""

    def _unbounded(self) -> ProgramError:
        return self.fail("an intermediate value has no bound (a shift by a variable that is not masked?)")

    # ---- numbers -------------------------------------------------------------------------------------------

    def data(self, expr: m.Expr, need: int | None = None) -> Value:
        """A number. ``need``: that many low bits suffice; None asks for the exact value."""
        value = self._data(expr, need)
        if value.ctype == WIDE and value.cong is None:
            if bits_of(value.low, value.high) > MAX_BITS:
                raise self._unbounded()
            self.widths.note(value.low, value.high)
        return value

    def _data(self, expr: m.Expr, need: int | None) -> Value:
        match expr:
            case m.Const(number):
                return const(number, self.widths)
            case m.FieldRef():
                return self.load(self.layout.field(expr), self.program.field_type(expr))
            case m.StackField(stack, name):
                header = self.last(stack)
                return self.load_member(header, name)
            case m.UnionStackField(stack, member, name):
                index = f"{self.layout.next[stack]} - 1"
                return self.load_member(self.array_element(f"{stack}.{member}", index), name)
            case m.Local(index):
                return self._param(index)
            case m.RegisterRef(name, index):
                return self._register(name, index)
            case m.Op():
                return self._operation(expr, need)
            case m.Bool(flag):
                return const(int(flag), self.widths)
        raise self.fail(f"{type(expr).__name__.lower()} is not a number")

    def load(self, lvalue: str, f: m.FieldType) -> Value:
        """The value of a field."""
        low, high = field_bounds(f)
        ctype = loaded_type(f)
        if f.varbit:
            code = f"w_from_bytes({lvalue}, {lvalue}_bits / 8)"
        elif ctype == WIDE:
            code = f"{'w_load_signed' if f.signed else 'w_load'}({lvalue}, {storage(f)[1]})"
        else:
            code = lvalue if storage(f)[0] == ctype else f"({ctype}){lvalue}"
        if ctype == WIDE:
            self.widths.note(low, high)
        return Value(code, low, high, ctype)

    def load_member(self, header: HeaderValue, name: str) -> Value:
        """The value of a header's field."""
        f = m.VALID if name == "$valid$" else header.type.by_name[name]
        return self.load(f"{header.code}.{self.layout.member(header.type.name, name)}", f)

    def _param(self, index: int) -> Value:
        assert self.action is not None
        f = m.FieldType(self.action.params[index].name, self.action.params[index].width)
        return self.load(f"args->{param_names(self.action)[index]}", f)

    def _register(self, name: str, index: m.Expr) -> Value:
        width = self.program.registers[name].width
        where = convert(self.data(index), U64)
        call = f"(pkt, {self.registers[name]}, {where})"
        if width <= 64:
            return Value(f"sw_register_u64{call}", 0, (1 << width) - 1, U64)
        if width <= 128:
            return Value(f"sw_register_u128{call}", 0, (1 << width) - 1, U128)
        self.widths.note(0, (1 << width) - 1)
        return Value(f"register_wide(pkt, {self.registers[name]}, {where}, {(width + 63) // 64})",
                     0, (1 << width) - 1, WIDE)  # fmt: skip

    def _operation(self, e: m.Op, need: int | None) -> Value:
        match e.op:
            case "+" | "-" | "*":
                return self._arith(e, need)
            case "&" | "|" | "^":
                return self._bitwise(e, need)
            case "~":
                return self._not(e, need)
            case "<<":
                return self._shift_left(e, need)
            case ">>":
                return self._shift_right(e)
            case "/" | "%":
                return self._divide(e)
            case "two_comp_mod":
                return self._sign_extend(e)
            case "usat_cast" | "sat_cast":
                return self._saturate(e)
            case "b2d":
                return Value(f"(uint64_t)({self.boolean(_right(e))})", 0, 1, U64)
            case "?":
                return self._choose(e)
            case "last_stack_index":
                # the index of an empty stack is -1 in BMv2
                stack = self._stack_name(_right(e))
                return Value(f"((int64_t){self.layout.next[stack]} - 1)", -1, 1 << 31, I64)
            case "size_stack":
                size = len(self.program.stacks[self._stack_name(_right(e))].headers)
                return const(size, self.widths)
            case "access_field":
                header = self.header(_left(e))
                return self.load_member(header, self._field_at(header, e))
        if e.op not in BOOLEAN:
            raise self.fail(f"{e.op} is not a number")
        return Value(f"(uint64_t)({self.boolean(e)})", 0, 1, U64)

    def _field_at(self, header: HeaderValue, e: m.Op) -> str:
        fields = header.type.fields
        if e.offset is None or e.offset > len(fields):
            raise self.fail(f"access_field {e.offset}: {header.type.name} has {len(fields)} fields")
        return fields[e.offset].name if e.offset < len(fields) else "$valid$"

    def _modular(self, need: int | None, *operands: Value) -> str | None:
        """The unsigned type to compute low bits in, or None where the exact result is wanted and to be had."""
        congs = [v.cong for v in operands if v.cong is not None]
        if need is None:
            assert not congs
            return None
        return modular_type(max([need, *congs])) if congs else None

    @staticmethod
    def _exact_type(low: int, high: int, need: int | None) -> str | None:
        """The C type of an exact result, or None where wrapping arithmetic on the needed low bits is cheaper."""
        if need is None:
            return ctype_for(low, high)
        bits = bits_of(low, high)
        for limit in (64, 128):
            if bits <= limit:
                return ctype_for(low, high)
            if need <= limit:
                return None
        return WIDE if bits <= MAX_BITS else None

    def _arith(self, e: m.Op, need: int | None) -> Value:
        a, b = self.data(_left(e), need), self.data(_right(e), need)
        ctype = self._modular(need, a, b)
        if ctype is None:
            if e.op == "+":
                low, high = a.low + b.low, a.high + b.high
            elif e.op == "-":
                low, high = a.low - b.high, a.high - b.low
            else:
                corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
                low, high = min(corners), max(corners)
            ctype = self._exact_type(low, high, need)
            if ctype is not None:
                return Value(_binary(e.op, convert(a, ctype), convert(b, ctype), ctype), low, high, ctype)
            assert need is not None
            ctype = modular_type(need)
        assert need is not None
        return self._wrapped(_binary(e.op, convert(a, ctype), convert(b, ctype), ctype), ctype, need)

    def _wrapped(self, code: str, ctype: str, cong: int) -> Value:
        """A value of which only low bits are right."""
        if ctype == WIDE:
            self.widths.note(0, (1 << cong) - 1)
        size = {U64: 64, U128: 128}.get(ctype, cong)
        return Value(code, 0, (1 << size) - 1, ctype, cong)

    def _bitwise(self, e: m.Op, need: int | None) -> Value:
        left, right = _left(e), _right(e)
        if e.op == "&":
            # a mask makes the other side's high bits irrelevant
            for mask, other in ((right, left), (left, right)):
                if isinstance(mask, m.Const) and mask.value >= 0:
                    bits = max(mask.value.bit_length(), 1)
                    value = self.data(other, bits if need is None else min(bits, need))
                    return self._masked(value, mask.value, bits, need)
        a, b = self.data(left, need), self.data(right, need)
        ctype = self._modular(need, a, b)
        if ctype is not None:
            assert need is not None
            return self._wrapped(_binary(e.op, convert(a, ctype), convert(b, ctype), ctype), ctype, need)
        if a.low >= 0 and b.low >= 0:
            top = min(a.high, b.high) if e.op == "&" else max(a.high, b.high)
            low, high = 0, top if e.op == "&" else (1 << bits_of(0, top)) - 1
        else:
            size = 1 << (max(bits_of(a.low, a.high) + (a.low >= 0), bits_of(b.low, b.high) + (b.low >= 0)) - 1)
            low, high = -size, size - 1
        ctype = ctype_for(low, high)
        if ctype == U64 and (a.ctype == U128 or b.ctype == U128):
            ctype = U128
        if WIDE in (a.ctype, b.ctype):
            ctype = WIDE
        return Value(_binary(e.op, convert(a, ctype), convert(b, ctype), ctype), low, high, ctype)

    def _masked(self, value: Value, mask: int, bits: int, need: int | None) -> Value:
        cong = None
        if need is not None and need < bits:
            mask, cong = mask & ((1 << need) - 1), need
            bits = max(mask.bit_length(), 1)
        ctype = modular_type(bits)
        if mask == (1 << bits) - 1:
            code = low_bits(value, bits)
        else:
            code = _binary("&", convert(value, ctype), convert(const(mask, self.widths), ctype), ctype)
        high = min(mask, value.high) if value.cong is None and value.low >= 0 else mask
        return Value(code, 0, high, ctype, cong)

    def _not(self, e: m.Op, need: int | None) -> Value:
        a = self.data(_right(e), need)
        if a.cong is not None or (need is not None and a.ctype in (U64, U128)):
            ctype = modular_type(need or 64) if a.cong is None else a.ctype
            code = convert(a, ctype)
            return self._wrapped(f"w_not({code})" if ctype == WIDE else f"(~({code}))", ctype, need or a.cong or 64)
        low, high = -a.high - 1, -a.low - 1
        ctype = ctype_for(low, high)
        code = convert(a, ctype)
        return Value(f"w_not({code})" if ctype == WIDE else f"(~({code}))", low, high, ctype)

    def _shift_left(self, e: m.Op, need: int | None) -> Value:
        by = self.data(_right(e))
        if by.low == by.high:
            return self._shift_left_by(_left(e), by.low, need)
        amount = self._amount(by)
        if need is not None:
            ctype = modular_type(need)
            return self._wrapped(self._shl(self.data(_left(e), need), amount, ctype, None), ctype, need)
        a = self.data(_left(e))
        if by.high > 4096:
            raise self._unbounded()
        low, high = min(a.low << max(by.high, 0), 0), max(a.high << max(by.high, 0), 0)
        ctype = ctype_for(low, high)
        return Value(self._shl(a, amount, ctype, None), low, high, ctype)

    def _shift_left_by(self, left: m.Expr, amount: int, need: int | None) -> Value:
        if amount < 0:
            raise self.fail("a shift by a negative number")
        a = self.data(left, need)
        if a.cong is None and amount <= MAX_BITS:
            low, high = min(a.low << amount, a.low), max(a.high << amount, 0)
            if bits_of(low, high) <= 64 or need is None:
                ctype = ctype_for(low, high)
                return Value(self._shl(a, str(amount), ctype, amount), low, high, ctype)
        if need is None:
            raise self._unbounded()
        ctype = modular_type(need)
        return self._wrapped(self._shl(a, str(min(amount, MAX_BITS)), ctype, amount), ctype, need)

    def _amount(self, by: Value) -> str:
        """Code of what to shift by; a negative number counts as a large one, as in BMv2."""
        return convert(by if by.high < 1 << 64 else self.clamped(by, by.low, (1 << 64) - 1), U64)

    def _shl(self, a: Value, amount: str, ctype: str, constant: int | None) -> str:
        if ctype == WIDE:
            return f"w_shl({convert(a, WIDE)}, {amount})"
        size = 64 if ctype in (U64, I64) else 128
        unsigned = U64 if size == 64 else U128
        code = convert(a, unsigned)
        if constant is not None:
            shifted = "0" if constant >= size else f"(({code}) << {constant})"
        else:
            shifted = f"{'sw_shl' if size == 64 else 'sw_shl128'}({code}, {amount})"
        return shifted if ctype == unsigned else f"({ctype}){shifted}"

    def _shift_right(self, e: m.Op) -> Value:
        a, by = self.data(_left(e)), self.data(_right(e))
        if by.low == by.high:
            if by.low < 0:
                raise self.fail("a shift by a negative number")
            amount = min(by.low, MAX_BITS)
            low, high = a.low >> amount, a.high >> amount
            if amount < 64 and a.ctype in (U64, I64):
                return Value(f"(({a.code}) >> {amount})", low, high, a.ctype)
        else:
            low, high = min(a.low, 0), max(a.high, -1)
        helper = {U64: "sw_shr", I64: "sw_sar", U128: "sw_shr128", I128: "sw_sar128", WIDE: "w_shr"}[a.ctype]
        return Value(f"{helper}({a.code}, {self._amount(by)})", low, high, a.ctype)

    def _divide(self, e: m.Op) -> Value:
        a, b = self.data(_left(e)), self.data(_right(e))
        if WIDE in (a.ctype, b.ctype) or a.low < 0 or b.low < 0:
            raise self.fail(f"{e.op} of a number that is negative or wider than 128 bits is not supported")
        ctype = U128 if U128 in (a.ctype, b.ctype) else U64
        helper = {"/": "sw_div", "%": "sw_mod"}[e.op] + ("128" if ctype == U128 else "")
        high = a.high if e.op == "/" else min(a.high, b.high)
        return Value(f"{helper}({convert(a, ctype)}, {convert(b, ctype)})", 0, high, ctype)

    def _width(self, e: m.Op) -> int:
        if not isinstance(e.right, m.Const) or not 1 <= e.right.value <= 8192:
            raise self.fail(f"{e.op} needs a constant width of 1..8192 bits")
        return e.right.value

    def _sign_extend(self, e: m.Op) -> Value:
        width = self._width(e)
        a = self.data(_left(e), width)
        low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
        if a.cong is None and a.low >= low and a.high <= high:
            return a
        ctype = modular_type(width)
        code = convert(a, ctype)
        if ctype == WIDE:
            self.widths.note(low, high)
            return Value(f"w_sext({code}, {width})", low, high, WIDE)
        if ctype == U64:
            return Value(f"sw_sext({code}, {width})", low, high, I64)
        return Value(f"sw_sext128({code}, {width})", low, high, I128)

    def _saturate(self, e: m.Op) -> Value:
        width = self._width(e)
        if e.op == "usat_cast":
            low, high = 0, (1 << width) - 1
        else:
            low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
        return self.clamped(self.data(_left(e)), low, high)

    def clamped(self, a: Value, low: int, high: int) -> Value:
        """The value, no less than low and no more than high."""
        if a.low >= low and a.high <= high:
            return a
        ctype = ctype_for(min(a.low, low), max(a.high, high))
        if ctype == WIDE:
            self.widths.note(min(a.low, low), max(a.high, high))
            helper = "w_clamp"
        else:
            helper = {U64: "sw_clamp_u64", I64: "sw_clamp_i64", U128: "sw_clamp_u128", I128: "sw_clamp_i128"}[ctype]
        return Value(f"{helper}({convert(a, ctype)}, {literal(low, ctype)}, {literal(high, ctype)})", low, high, ctype)

    def _choose(self, e: m.Op) -> Value:
        assert e.cond is not None
        a, b = self.data(_left(e)), self.data(_right(e))
        low, high = min(a.low, b.low), max(a.high, b.high)
        ctype = ctype_for(low, high)
        if WIDE in (a.ctype, b.ctype):
            ctype = WIDE
        elif ctype in (U64, I64) and {a.ctype, b.ctype} & {U128, I128}:
            ctype = U128 if low >= 0 else I128
        return Value(f"({self.boolean(e.cond)} ? {convert(a, ctype)} : {convert(b, ctype)})", low, high, ctype)

    # ---- conditions ----------------------------------------------------------------------------------------

    def boolean(self, expr: m.Expr) -> str:
        """A condition."""
        match expr:
            case m.Bool(flag):
                return "1" if flag else "0"
            case m.Op("not", _, right):
                return f"!({self.boolean(some(right))})"
            case m.Op("and" | "or" as op, left, right):
                return f"(({self.boolean(some(left))}) {'&&' if op == 'and' else '||'} ({self.boolean(some(right))}))"
            case m.Op("valid", _, right):
                return self.header(some(right)).valid
            case m.Op("valid_union", _, right):
                return self._union_valid(some(right))
            case m.Op("==" | "!=" as op, left, right) if self._is_boolean(some(left)):
                return f"(!({self.boolean(some(left))}) {op} !({self.boolean(some(right))}))"
            case m.Op("==" | "!=", left, _) if self._is_header(some(left)):
                return self._same_header(expr)
            case m.Op("==" | "!=", left, _) if self._is_union(some(left)):
                return self._same_union(expr)
            case m.Op(op) if op in COMPARE:
                return self._compare(expr)
            case m.Op("?", left, right, cond) if self._is_boolean(some(left)):
                return f"({self.boolean(some(cond))} ? {self.boolean(some(left))} : {self.boolean(some(right))})"
            case m.Op("d2b", _, right):
                return self._nonzero(self.data(some(right)))
        return self._nonzero(self.data(expr))

    def _nonzero(self, value: Value) -> str:
        if value.ctype == WIDE:
            return f"(w_cmp({value.code}, w_fill(0)) != 0)"
        return f"({value.code} != 0)"

    def _compare(self, e: m.Op) -> str:
        a, b = self.data(_left(e)), self.data(_right(e))
        ctype = ctype_for(min(a.low, b.low), max(a.high, b.high))
        if WIDE in (a.ctype, b.ctype):
            ctype = WIDE
        if ctype == WIDE:
            self.widths.note(min(a.low, b.low), max(a.high, b.high))
            return f"(w_cmp({convert(a, WIDE)}, {convert(b, WIDE)}) {e.op} 0)"
        if ctype in (U64, I64) and {a.ctype, b.ctype} & {U128, I128}:
            ctype = U128 if ctype == U64 else I128
        return f"({convert(a, ctype)} {e.op} {convert(b, ctype)})"

    def _is_boolean(self, expr: m.Expr) -> bool:
        match expr:
            case m.Bool():
                return True
            case m.Op("?", left):
                return self._is_boolean(some(left))
            case m.Op(op):
                return op in BOOLEAN
        return False

    @staticmethod
    def _is_header(expr: m.Expr) -> bool:
        match expr:
            case m.Named("header") | m.Op("dereference_header_stack" | "access_union_header"):
                return True
        return False

    @staticmethod
    def _is_union(expr: m.Expr) -> bool:
        match expr:
            case m.Named("header_union") | m.Op("dereference_union_stack"):
                return True
        return False

    def _same_header(self, e: m.Op) -> str:
        a, b = self.header(_left(e)), self.header(_right(e))
        if a.type != b.type:
            return "0" if e.op == "==" else "1"
        return f"{'!' if e.op == '!=' else ''}{self.headers_equal(a, b)}"

    def headers_equal(self, a: HeaderValue, b: HeaderValue) -> str:
        """Both valid and every field the same."""
        parts = [a.valid, b.valid]
        for f in a.type.fields:
            x, y = self.load_member(a, f.name), self.load_member(b, f.name)
            parts.append(f"w_cmp({x.code}, {y.code}) == 0" if x.ctype == WIDE else f"{x.code} == {y.code}")
        return f"({' && '.join(parts)})"

    def _same_union(self, e: m.Op) -> str:
        pairs = zip(self.union_members(_left(e)), self.union_members(_right(e)), strict=True)
        return f"{'!' if e.op == '!=' else ''}({' || '.join(self.headers_equal(a, b) for a, b in pairs)})"

    def _union_valid(self, expr: m.Expr) -> str:
        return f"({' || '.join(h.valid for h in self.union_members(expr))})"


def _left(e: m.Op) -> m.Expr:
    return some(e.left)


def _right(e: m.Op) -> m.Expr:
    return some(e.right)


def _binary(op: str, a: str, b: str, ctype: str) -> str:
    if ctype == WIDE:
        return f"{ (ARITH | BITWISE)[op] }({a}, {b})"
    return f"({a} {op} {b})"
