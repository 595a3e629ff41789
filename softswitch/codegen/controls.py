"""Actions, tables and pipelines to C: one function an action, a table and a control."""

from __future__ import annotations

from softswitch import model as m
from softswitch.codegen.expressions import Expressions
from softswitch.codegen.names import Layout, c_json, comment, param_names, storage, unique
from softswitch.codegen.packing import ZERO, Piece, chunks
from softswitch.codegen.parser import pieces
from softswitch.codegen.statements import Indices, Statements
from softswitch.codegen.values import U64, U128, WIDE, Value, Widths, literal, low_bits
from softswitch.json_node import ProgramError
from softswitch.parse_controls import successors

JUMPS = ("_jump", "_jump_if_zero")


class ControlGenerator:
    """Makes the controls of one program."""

    def __init__(self, layout: Layout, widths: Widths, indices: Indices) -> None:
        self.layout, self.widths, self.indices = layout, widths, indices
        self.program = layout.program
        self.tables = unique(self.program.tables)

    def _statements(self, path: str, action: m.Action | None = None) -> Statements:
        return Statements(Expressions(self.layout, self.widths, self.indices.registers, path, action), self.indices)

    # ---- actions -------------------------------------------------------------------------------------------

    def action(self, action: m.Action) -> list[str]:
        """The args struct of an action and its function."""
        cname = self.indices.actions[action.ident]
        lines = [f"struct args_{cname} {{"]
        for name, p in zip(param_names(action), action.params, strict=True):
            ctype, limbs = storage(m.FieldType(p.name, p.width))
            lines.append(f"    {ctype} {name}{f'[{limbs}]' if limbs else ''}; /* bit<{p.width}> */")
        lines += ["    uint8_t end;", "};", ""]
        body = self._statements(action.path, action)
        body.trace("action", ("name", "%s", c_json(action.name)), self._trace_args(action))
        self._primitives(body, action)
        head = f"static void action_{cname}(sw_pkt *pkt, phv_t *phv, const struct args_{cname} *args)"
        return [*lines, f"{head} /* {comment(action.name)} */", "{", "    (void)pkt, (void)phv, (void)args;",
                *body.lines, "}", ""]  # fmt: skip

    @staticmethod
    def _trace_args(action: m.Action) -> tuple[str, str, str]:
        """The arguments as a JSON list of hex strings."""
        forms: list[str] = []
        codes: list[str] = []
        for name, p in zip(param_names(action), action.params, strict=True):
            if p.width <= 64:
                forms.append('"0x%llx"')
                codes.append(f"(unsigned long long)args->{name}")
                continue
            where = f"args->{name}" if storage(m.FieldType(p.name, p.width))[1] else f"&args->{name}"
            forms.append('"%s"')
            codes.append(f"sw_hex_limbs((char[{p.width // 4 + 20}]){{0}}, {where}, {(p.width + 63) // 64})")
        return "args", f"[{','.join(forms)}]", ", ".join(codes)

    def _primitives(self, body: Statements, action: m.Action) -> None:
        jumps = {i: self._jump_target(action, p) for i, p in enumerate(action.primitives) if p.op in JUMPS}
        if any(target <= i for i, target in jumps.items()):
            body.add("uint32_t steps = 0;")
        for i, p in enumerate(action.primitives):
            if i in jumps.values():
                body.lines.append(f"label_{i}:;")
            body.e.path = p.path
            if i not in jumps:
                body.primitive(p)
                continue
            if p.op == "_jump_if_zero":
                body.open(f"if (!({body.e.boolean(p.args[0])}))")
            else:
                body.open("")
            if jumps[i] <= i:
                body.add("if (++steps > SW_LOOP_STEPS)")
                body.add("    return;")
            body.add(f"goto label_{jumps[i]};")
            body.close()
        if len(action.primitives) in jumps.values():
            body.lines.append(f"label_{len(action.primitives)}:;")

    def _jump_target(self, action: m.Action, p: m.Primitive) -> int:
        count = {"_jump": 1, "_jump_if_zero": 2}[p.op]
        target = p.args[-1] if len(p.args) == count else None
        if not isinstance(target, m.Const) or not 0 <= target.value <= len(action.primitives):
            raise ProgramError(p.path, f"{p.op} must go to a primitive of its action")
        return target.value

    # ---- tables --------------------------------------------------------------------------------------------

    def table(self, table: m.Table) -> list[str]:
        """A table's function: the key, the lookup, the action. Returns the action's number, with SW_HIT on a hit."""
        cname = self.tables[table.name]
        body = self._statements(table.path)
        if self._is_constant(table):
            assert table.default is not None
            self._call(body, table.default)
            body.add(f"return {self._action_index(table.default.action)};")
        else:
            self._lookup(body, table)
        head = f"static uint32_t table_{cname}(sw_pkt *pkt, phv_t *phv) /* {comment(table.name)} */"
        return [head, "{", "    (void)pkt, (void)phv;", *body.lines, "}", ""]

    @staticmethod
    def _is_constant(table: m.Table) -> bool:
        """A table without a key whose default nobody can change: p4c's way to write a statement."""
        return (
            not table.key and table.default is not None and table.default_entry_const and not table.with_counters
            and not table.with_ageing and table.direct_meter is None and table.impl == "simple"
        )  # fmt: skip

    def _action_index(self, ident: int) -> str:
        return f"ACTION_{self.indices.actions[ident]}"

    def _call(self, body: Statements, call: m.Call) -> None:
        action = self.program.actions[call.action]
        cname = self.indices.actions[call.action]
        if not action.params:
            body.add(f"action_{cname}(pkt, phv, NULL);")
            return
        values: list[str] = []
        for name, p, arg in zip(param_names(action), action.params, call.args, strict=True):
            limbs = storage(m.FieldType(p.name, p.width))[1]
            if limbs:
                parts = ", ".join(literal(arg >> (64 * j) & ((1 << 64) - 1), U64) for j in range(limbs))
                values.append(f".{name} = {{{parts}}}")
            else:
                values.append(f".{name} = {body.e.data(m.Const(arg)).code}")
        body.add(f"const struct args_{cname} args = {{{', '.join(values)}}};")
        body.add(f"action_{cname}(pkt, phv, &args);")

    def _lookup(self, body: Statements, table: m.Table) -> None:
        body.add("const uint64_t key[] = {")
        for word in self._key_words(body, table):
            body.add(f"    {word},")
        body.add("};")
        index = self.indices.tables[table.name]
        body.add(f"sw_hit hit = sw_table_apply(pkt, {index}, key);")
        body.trace(
            "table",
            ("name", "%s", c_json(table.name)),
            ("key", '"%s"', f"sw_hex((char[{2 * table.key_bytes + 1}]){{0}}, key, {table.key_bytes})"),
            ("hit", "%s", 'hit.entry ? "true" : "false"'),
            ("entry", "%llu", "hit.entry ? (unsigned long long)hit.entry->handle : 0ULL"),
        )
        if table.direct_meter is not None:
            self._direct_meter(body, table)
        body.open("switch (hit.action)")
        for ident in dict.fromkeys([*table.actions, *([table.default.action] if table.default else [])]):
            cname = self.indices.actions[ident]
            namesakes = self._namesakes(table, ident)
            for other in (ident, *namesakes):
                body.add(f"case {self._action_index(other)}:")
            body.add(f"    action_{cname}(pkt, phv, hit.args);")
            if namesakes:
                body.add(f"    hit.action = ACTION_{cname};")
            body.add("    break;")
        if table.impl == "indirect_ws":
            body.add("case SW_DROP_ACTION: /* no live member */")
            body.add("    v1_mark_to_drop(pkt, phv);")
            body.add("    pkt->exited = true;")
            body.add("    break;")
        body.add("default:")
        body.add("    break;")
        body.close()
        body.add("return (hit.action & ~SW_HIT) | (hit.entry ? SW_HIT : 0);")

    def _namesakes(self, table: m.Table, ident: int) -> list[int]:
        """The copies of an action that p4c made for other tables with the same action profile."""
        name = self.program.actions[ident].name
        if table.profile is None:
            return []
        sharing = (t.actions for t in self.program.tables.values() if t.profile == table.profile)
        same = (i for actions in sharing for i in actions if i != ident and self.program.actions[i].name == name)
        return list(dict.fromkeys(same))

    def _key_words(self, body: Statements, table: m.Table) -> list[str]:
        """The key in 64-bit words: its fields byte-padded and right-aligned, zero where their header is invalid."""
        packed: list[Piece] = []
        for f in table.key:
            packed += self._key_field(body, f)
        packed.append((ZERO, 64 * max((table.key_bytes + 7) // 8, 1) - 8 * table.key_bytes))
        return [f"sw_big({code})" if code != ZERO else ZERO for code, _ in chunks(packed)]

    def _key_field(self, body: Statements, f: m.KeyField) -> list[Piece]:
        header = body.e.header(m.Named("header", f.target.header))
        if f.target.field == "$valid$":
            return [(header.valid, 8)]
        value = body.e.data(f.target)
        if f.mask is not None:
            value = body.e.data(m.Op("&", f.target, m.Const(f.mask)))
        ctype = U64 if f.width <= 64 else U128 if f.width <= 128 else WIDE
        parts = pieces(Value(low_bits(value, f.width), 0, (1 << f.width) - 1, ctype), f.width)
        if not header.metadata:
            parts = [(f"({header.valid} ? {code} : 0)", bits) for code, bits in parts]
        return [(ZERO, 8 * f.nbytes - f.width), *parts]

    def _direct_meter(self, body: Statements, table: m.Table) -> None:
        assert table.direct_meter is not None
        meter = self.program.meters[table.direct_meter]
        if meter.result is None:
            raise ProgramError(table.path, f"meter {meter.name!r} is not direct")
        body.open("if (hit.entry)")
        color = f"(uint64_t)sw_meter_run_direct(pkt, {self.indices.meters[meter.name]}, hit.entry)"
        body.store(*body.target(meter.result), Value(color, 0, 2, U64))
        body.close()

    # ---- pipelines -----------------------------------------------------------------------------------------

    def pipeline(self, name: str, pipeline: m.Pipeline) -> list[str]:
        """A control: its nodes in the order in which they can come, as labels of one function."""
        labels = unique(pipeline.nodes)
        body = self._statements(name)
        for node_name in _topological(pipeline):
            body.lines.append(f"node_{labels[node_name]}:;")
            self._node(body, pipeline.nodes[node_name], labels)
        head = [f"static void control_{name}(sw_pkt *pkt, phv_t *phv)", "{", "    (void)pkt, (void)phv;"]
        return [*head, f"    {self._go(pipeline.first, labels)}", *body.lines, "}", ""]

    def _go(self, target: str | None, labels: dict[str, str]) -> str:
        return "return;" if target is None else f"goto node_{labels[target]};"

    def _node(self, body: Statements, node: m.Node, labels: dict[str, str]) -> None:
        body.e.path = node.path
        match node:
            case m.Conditional():
                condition = body.e.boolean(node.condition)
                body.open("")
                body.add(f"bool condition = {condition};")
                value = ("value", "%s", 'condition ? "true" : "false"')
                body.trace("condition", ("name", "%s", c_json(node.name)), value)
                body.add("if (condition)")
                body.add(f"    {self._go(node.true_next, labels)}")
                body.add(self._go(node.false_next, labels))
                body.close()
            case m.ActionCall():
                self._call(body, m.Call(node.action, ()))
                self._leave_on_exit(body, [node.action])
                body.add(self._go(node.next, labels))
            case m.Table():
                self._apply(body, node, labels)

    def _leave_on_exit(self, body: Statements, actions: list[int], always: bool = False) -> None:
        if always or any(p.op == "exit" for a in actions for p in self.program.actions[a].primitives):
            body.add("if (pkt->exited)")
            body.add("    return;")

    def _apply(self, body: Statements, table: m.Table, labels: dict[str, str]) -> None:
        cname = self.tables[table.name]
        targets = {*table.next_by_action.values(), table.base_next}
        actions = [*table.actions, *([table.default.action] if table.default else [])]
        selector = table.impl == "indirect_ws"
        if table.splits_on_hit:
            body.open("")
            body.add(f"bool was_hit = table_{cname}(pkt, phv) & SW_HIT;")
            self._leave_on_exit(body, actions, selector)
            body.add("if (was_hit)")
            body.add(f"    {self._go(table.next_hit, labels)}")
            body.add(self._go(table.next_miss, labels))
            body.close()
        elif len(targets) == 1:
            body.add(f"table_{cname}(pkt, phv);")
            self._leave_on_exit(body, actions, selector)
            body.add(self._go(targets.pop(), labels))
        else:
            body.open("")
            body.add(f"uint32_t ran = table_{cname}(pkt, phv) & ~SW_HIT;")
            self._leave_on_exit(body, actions, selector)
            body.open("switch (ran)")
            for ident, target in table.next_by_action.items():
                body.add(f"case {self._action_index(ident)}:")
                body.add(f"    {self._go(target, labels)}")
            body.add("default:")
            body.add(f"    {self._go(table.base_next, labels)}")
            body.close()
            body.close()


def _topological(pipeline: m.Pipeline) -> list[str]:
    """The nodes that can be reached, each before all that may come after it."""
    order: list[str] = []
    seen: set[str] = set()
    stack: list[tuple[str, bool]] = [(pipeline.first, False)] if pipeline.first else []
    while stack:
        name, finished = stack.pop()
        if finished:
            order.append(name)
        elif name not in seen:
            seen.add(name)
            stack.append((name, True))
            stack += [(n, False) for n in successors(pipeline.nodes[name]) if n not in seen]
    return order[::-1]
