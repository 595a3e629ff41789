"""Bytes out of fields: the deparser, calculations, checksums, digests and field lists, to C."""

from __future__ import annotations

from softswitch import model as m
from softswitch.codegen.expressions import Expressions
from softswitch.codegen.headers import HeaderValue
from softswitch.codegen.names import Layout, c_json, comment, storage
from softswitch.codegen.packing import Piece, chunks
from softswitch.codegen.parser import pieces
from softswitch.codegen.statements import Indices, Statements
from softswitch.codegen.values import U64, U128, Value, Widths, convert, low_bits, modular_type
from softswitch.json_node import ProgramError

ALGORITHMS = {
    "crc16": "sw_crc16", "crc32": "sw_crc32", "crcCCITT": "sw_crcCCITT", "csum16": "sw_csum16",
    "cksum16": "sw_cksum16", "xor16": "sw_xor16", "identity": "sw_identity", "xxh64": "sw_xxh64",
    "bmv2_hash": "sw_xxh64", "hash_ex": "sw_hash_ex",
}  # fmt: skip
# BMv2's defaults of the CRCs that Thrift can change: width, polynomial, initial value, final xor, reflected
CUSTOM = {
    "crc8_custom": "{8, 0x07, 0, 0, false, false}",
    "crc16_custom": "{16, 0x8005, 0, 0, true, true}",
    "crc32_custom": "{32, 0x04c11db7, 0xffffffff, 0xffffffff, true, true}",
    "crc64_custom": "{64, 0x1b, 0, 0, true, true}",
}


MAX_INPUT_BITS = 1 << 19  # of a calculation, which gathers them on the stack


class DeparserGenerator:
    """Makes everything of one program that turns fields into bytes."""

    def __init__(self, layout: Layout, widths: Widths, indices: Indices) -> None:
        self.layout, self.widths, self.indices = layout, widths, indices
        self.program = layout.program

    def _statements(self, path: str) -> Statements:
        expressions = Expressions(self.layout, self.widths, self.indices.registers, path)
        return Statements(expressions, self.indices, "return false;")

    # ---- deparser ------------------------------------------------------------------------------------------

    def deparse(self) -> list[str]:
        """``deparse``: checksums, then the valid headers before the payload. False where the headers do not fit."""
        body = self._statements("deparsers[0]")
        for checksum in self.program.checksums:
            if checksum.update:
                self._update(body, checksum)
        for call in self.program.deparser_calls:
            body.e.path = call.path
            body.primitive(call)
        headers = [(name, body.e.header(m.Named("header", name))) for name in self.program.deparser]
        body.add("uint32_t size = 0;")
        for _, header in headers:
            body.add(f"if ({header.valid})")
            body.add(f"    size += {header.nbytes};")
        body.add("if (size > pkt->off)")
        body.add("    return false;")
        body.add("pkt->off -= size;")
        body.add("pkt->len += size;")
        body.add("uint8_t *q = pkt->buf + pkt->off;")
        for name, header in headers:
            body.open(f"if ({header.valid})")
            body.trace("emit", ("header", "%s", c_json(name)))
            self._header_bytes(body, header)
            body.close()
        return ["static bool deparse(sw_pkt *pkt, phv_t *phv)", "{", "    (void)phv;", *body.lines,
                "    (void)q;", "    return true;", "}", ""]  # fmt: skip

    def _header_bytes(self, body: Statements, header: HeaderValue) -> None:
        """All fields of a header at ``q``, which moves on."""
        run: list[Piece] = []
        for f in header.type.fields:
            if f.varbit:
                self._flush(body, run)
                self._varbit_bytes(body, f"{header.code}.{header.varbit_name}")
            else:
                run += self._pieces(body.e.load_member(header, f.name), f)
        self._flush(body, run)

    def _varbit_bytes(self, body: Statements, lvalue: str) -> None:
        body.add(f"memcpy(q, {lvalue}, {lvalue}_bits / 8);")
        body.add(f"q += {lvalue}_bits / 8;")

    @staticmethod
    def _pieces(value: Value, f: m.FieldType) -> list[Piece]:
        if f.signed:
            value = Value(low_bits(value, f.width), 0, (1 << f.width) - 1, modular_type(f.width))
        return pieces(value, f.width)

    @staticmethod
    def _flush(body: Statements, run: list[Piece]) -> None:
        for code, nbytes in chunks(run):
            body.add(f"sw_st(q, {nbytes}, {code});")
            body.add(f"q += {nbytes};")
        run.clear()

    # ---- calculations --------------------------------------------------------------------------------------

    def calculation(self, calculation: m.Calculation) -> list[str]:
        """The function of a calculation."""
        name = self.indices.calculations[calculation.name]
        return self._hash(f"static uint64_t {name}(sw_pkt *pkt, phv_t *phv)", calculation)

    def selector(self, profile: m.Profile) -> list[str]:
        """The hash of a selector's input."""
        for item in profile.inputs:
            if not isinstance(item, m.FieldRef):
                raise ProgramError(profile.path, "a selector's input must be fields")
        inputs = tuple(f for f in profile.inputs if isinstance(f, m.FieldRef))
        calculation = m.Calculation(profile.name, profile.algo or "", inputs, profile.path)
        head = f"static uint64_t hash_{self.indices.profiles[profile.name]}(sw_pkt *pkt)"
        return self._hash(head, calculation, ["    phv_t *phv = pkt->phv;"])

    def _hash(self, head: str, c: m.Calculation, prologue: list[str] | None = None) -> list[str]:
        body = self._statements(c.path)
        bits = sum(self._input_bits(item) for item in c.inputs)
        if bits > MAX_INPUT_BITS:
            raise ProgramError(c.path, f"an input of more than {MAX_INPUT_BITS} bits is not supported")
        payload = any(isinstance(item, m.Payload) for item in c.inputs)
        body.add(f"uint8_t buf[{(bits + 7) // 8 + 8}{' + SW_PACKET_MAX' if payload else ''}];")
        if self._byte_aligned(c):
            self._aligned_input(body, c)
        else:
            self._unaligned_input(body, c)
        if payload:
            body.add("uint32_t rest = pkt->len < pkt->truncate ? pkt->len : pkt->truncate;")
            body.add("memcpy(buf + n, pkt->buf + pkt->off, rest);")
            body.add("n += rest;")
        if c.algo in ALGORITHMS:
            body.add(f"return {ALGORITHMS[c.algo]}(buf, n);")
        elif c.algo in CUSTOM:
            body.add(f"static const sw_crc_params params = {CUSTOM[c.algo]};")
            body.add("return sw_crc_custom(&params, buf, n);")
        else:
            raise ProgramError(c.path + ".algo", f"hash algorithm {c.algo!r} is not supported; "
                               f"supported are {', '.join([*ALGORITHMS, *CUSTOM])}")  # fmt: skip
        return [head, "{", *(prologue or []), "    (void)pkt, (void)phv;", *body.lines, "}", ""]

    def _input_bits(self, item: m.FieldRef | m.CalcConst | m.Named | m.Payload) -> int:
        match item:
            case m.FieldRef():
                return self.program.field_type(item).width
            case m.CalcConst():
                return item.width
            case m.Named(_, name):
                return sum(f.width for f in self.program.headers[name].type.fields)
        return 0

    def _groups(self, c: m.Calculation) -> list[tuple[str | None, list[m.FieldRef | m.CalcConst]]]:
        """Runs of fields that are there or missing together: (header or None for always, fields)."""
        groups: list[tuple[str | None, list[m.FieldRef | m.CalcConst]]] = []
        for item in c.inputs:
            if isinstance(item, m.Payload):
                continue
            members: list[m.FieldRef | m.CalcConst]
            owner: str | None
            if isinstance(item, m.CalcConst):
                owner, members = None, [item]
            elif isinstance(item, m.FieldRef):
                owner, members = item.header, [item]
            else:
                owner = item.name
                members = [m.FieldRef(owner, f.name) for f in self.program.headers[owner].type.fields]
            if owner is not None and self.program.headers[owner].metadata:
                owner = None
            if groups and groups[-1][0] == owner:
                groups[-1][1].extend(members)
            else:
                groups.append((owner, members))
        return groups

    def _byte_aligned(self, c: m.Calculation) -> bool:
        return all(
            sum(0 if self._is_varbit(f) else self._input_bits(f) for f in fields) % 8 == 0
            for _, fields in self._groups(c)
        )

    def _is_varbit(self, f: m.FieldRef | m.CalcConst) -> bool:
        return isinstance(f, m.FieldRef) and self.program.field_type(f).varbit

    def _field_pieces(self, body: Statements, f: m.FieldRef | m.CalcConst) -> list[Piece]:
        if isinstance(f, m.CalcConst):
            value = body.e.data(m.Const(f.value))
            ctype = modular_type(f.width)
            return pieces(Value(convert(value, ctype), 0, f.value, ctype), f.width)
        return self._pieces(body.e.data(f), self.program.field_type(f))

    def _aligned_input(self, body: Statements, c: m.Calculation) -> None:
        body.add("uint8_t *q = buf;")
        for owner, fields in self._groups(c):
            if owner is not None:
                body.open(f"if ({body.e.header(m.Named('header', owner)).valid})")
            run: list[Piece] = []
            for f in fields:
                if isinstance(f, m.FieldRef) and self._is_varbit(f):
                    self._flush_aligned(body, run)
                    self._varbit_bytes(body, self.layout.field(f))
                else:
                    run += self._field_pieces(body, f)
            self._flush_aligned(body, run)
            if owner is not None:
                body.close()
        body.add("size_t n = (size_t)(q - buf);")

    def _flush_aligned(self, body: Statements, run: list[Piece]) -> None:
        if sum(bits for _, bits in run) % 8:
            raise body.e.fail("a varbit field of a calculation must start on a byte")
        self._flush(body, run)

    def _unaligned_input(self, body: Statements, c: m.Calculation) -> None:
        body.add("sw_writer w = {buf, 0};")
        for owner, fields in self._groups(c):
            if owner is not None:
                body.open(f"if ({body.e.header(m.Named('header', owner)).valid})")
            for f in fields:
                if isinstance(f, m.FieldRef) and self._is_varbit(f):
                    lvalue = self.layout.field(f)
                    body.add(f"sw_put_bytes(&w, {lvalue}, {lvalue}_bits / 8);")
                    continue
                for code, bits in self._field_pieces(body, f):
                    body.add(f"sw_put(&w, {code}, {bits});")
            if owner is not None:
                body.close()
        body.add("size_t n = (w.bits + 7) / 8;")

    # ---- checksums -----------------------------------------------------------------------------------------

    def _update(self, body: Statements, c: m.Checksum) -> None:
        body.e.path = c.path
        body.open(f"if ({body.e.boolean(c.condition) if c.condition is not None else '1'})")
        value = Value(f"{self.indices.calculations[c.calculation]}(pkt, phv)", 0, (1 << 64) - 1, U64)
        body.store(*body.target(c.target), value)
        body.close()

    def verify_checksums(self) -> list[str]:
        """``verify_checksums``: after the parser."""
        body = self._statements("checksums")
        for c in self.program.checksums:
            if not c.verify:
                continue
            body.e.path = c.path
            tests = [body.e.header(m.Named("header", c.target.header)).valid]
            if c.condition is not None:
                tests.append(f"({body.e.boolean(c.condition)})")
            value = body.e.data(c.target)
            if value.ctype not in (U64, U128):
                raise body.e.fail("a checksum wider than 128 bits or signed is not supported")
            tests.append(f"{self.indices.calculations[c.calculation]}(pkt, phv) != {value.code}")
            body.add(f"if ({' && '.join(tests)})")
            body.add("    pkt->checksum_error = true;")
        return ["static void verify_checksums(sw_pkt *pkt, phv_t *phv)", "{", "    (void)pkt, (void)phv;",
                *body.lines, "}", ""]  # fmt: skip

    # ---- digests and field lists ---------------------------------------------------------------------------

    def digests(self) -> list[str]:
        """``send_digest``: the sample of the learn list that ``pkt->digest`` names, every field byte-padded."""
        body = self._statements("learn_lists")
        body.open("switch (pkt->digest)")
        for index, digest in enumerate(self.program.digests.values()):
            body.add(f"case {digest.ident}: {{ /* {comment(digest.name)} */")
            body.indent += 1
            body.add(f"uint8_t sample[{max(self.digest_bytes(digest), 1)}];")
            body.add("uint8_t *q = sample;")
            for ref in digest.fields:
                f = self.program.field_type(ref)
                value = body.e.data(ref)
                masked = Value(low_bits(value, f.width), 0, (1 << f.width) - 1, modular_type(f.width))
                for code, bits in pieces(masked, f.width):
                    nbytes = (bits + 7) // 8
                    body.add(f"sw_st(q, {nbytes}, {code});")
                    body.add(f"q += {nbytes};")
            body.add("(void)q;")
            body.add(f"sw_digest(pkt, {index}, sample);")
            body.add("break;")
            body.close()
        body.add("default:")
        body.add("    break;")
        body.close()
        return ["static void send_digest(sw_pkt *pkt, phv_t *phv)", "{", "    (void)phv;", *body.lines, "}", ""]

    def digest_bytes(self, digest: m.FieldList) -> int:
        """Bytes of one sample."""
        return sum((self.program.field_type(f).width + 7) // 8 for f in digest.fields)

    def field_lists(self) -> list[str]:
        """``copy_fields``: what a clone, resubmit or recirculate keeps."""
        lines = ["static void copy_fields(phv_t *dst, const phv_t *src, unsigned list)", "{",
                 "    (void)dst, (void)src;", "    switch (list) {"]  # fmt: skip
        for field_list in self.program.field_lists.values():
            lines.append(f"    case {field_list.ident}:")
            for ref in field_list.fields:
                f = self.program.field_type(ref)
                member = self.layout.field(ref).removeprefix("phv->")
                if f.varbit:
                    lines.append(f"        dst->{member}_bits = src->{member}_bits;")
                if f.varbit or storage(f)[1]:
                    lines.append(f"        memcpy(dst->{member}, src->{member}, sizeof(dst->{member}));")
                else:
                    lines.append(f"        dst->{member} = src->{member};")
            lines.append("        break;")
        return [*lines, "    default:", "        break;", "    }", "}", ""]


