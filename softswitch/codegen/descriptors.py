"""``sw_the_program``: what the runtime knows of a program."""

from __future__ import annotations

from softswitch import model as m
from softswitch.codegen.deparser import DeparserGenerator
from softswitch.codegen.names import c_string, param_names
from softswitch.codegen.statements import Indices

MATCH = {"exact": "SW_EXACT", "valid": "SW_EXACT", "lpm": "SW_LPM", "ternary": "SW_TERNARY", "range": "SW_RANGE"}
IMPL = {"simple": "SW_SIMPLE", "indirect": "SW_INDIRECT", "indirect_ws": "SW_SELECTOR"}


def descriptors(program: m.Program, indices: Indices, deparser: DeparserGenerator) -> list[str]:
    """The definition of ``sw_the_program`` and all it points to."""
    order = list(program.actions)
    lines = [line for ident in order for line in _params(program.actions[ident], indices)]
    lines += [line for table in program.tables.values() for line in _table_parts(table, indices, program)]
    actions = [_action(program.actions[i], indices) for i in order]
    tables = [_table(t, program, order, indices) for t in program.tables.values()]
    profiles = [
        f"{{{c_string(p.name)}, {p.max_size}, {_flag(p.algo is not None)}, "
        f"{f'hash_{indices.profiles[p.name]}' if p.algo is not None else 'NULL'}}}"
        for p in program.profiles.values()
    ]
    counters = [f"{{{c_string(c.name)}, {c.size}, {_flag(c.table is not None)}}}" for c in program.counters.values()]
    meters = [
        f"{{{c_string(x.name)}, {x.size}, {_flag(x.table is not None)}, {_flag(x.unit == 'bytes')}, {x.rates}}}"
        for x in program.meters.values()
    ]
    registers = [f"{{{c_string(r.name)}, {r.size}, {r.width}}}" for r in program.registers.values()]
    digests = [f"{{{c_string(d.name)}, {d.ident}, {deparser.digest_bytes(d)}}}" for d in program.digests.values()]
    value_sets = [f"{{{c_string(v.name)}, {v.width}}}" for v in program.value_sets.values()]
    groups = {
        "table": tables, "action": actions, "profile": profiles, "counter": counters, "meter": meters,
        "register": registers, "digest": digests, "value_set": value_sets,
    }  # fmt: skip
    for kind, items in groups.items():
        if items:
            lines += [f"static const sw_{kind}_desc {kind}s[] = {{", *(f"    {item}," for item in items), "};"]
    lines += ["", "const sw_program sw_the_program = {", "    .abi = SW_ABI,", f"    .name = {c_string(program.name)},"]
    lines.append("    .phv_size = sizeof(phv_t),")
    for kind, items in groups.items():
        lines.append(f"    .n_{kind}s = {len(items)},")
        if items:
            lines.append(f"    .{kind}s = {kind}s,")
    return [*lines, "    .receive = v1_receive,", "    .ingress = v1_ingress,", "    .egress = v1_egress,", "};"]


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _params(action: m.Action, indices: Indices) -> list[str]:
    if not action.params:
        return []
    cname = indices.actions[action.ident]
    lines = [f"static const sw_param params_{cname}[] = {{"]
    for name, p in zip(param_names(action), action.params, strict=True):
        where = f"offsetof(struct args_{cname}, {name}), sizeof(((struct args_{cname} *)0)->{name})"
        lines.append(f"    {{{c_string(p.name)}, {p.width}, {where}}},")
    return [*lines, "};"]


def _action(action: m.Action, indices: Indices) -> str:
    cname = indices.actions[action.ident]
    params = f"params_{cname}" if action.params else "NULL"
    return f"{{{c_string(action.name)}, {len(action.params)}, {params}, sizeof(struct args_{cname})}}"


def _table_parts(table: m.Table, indices: Indices, program: m.Program) -> list[str]:
    """The arrays that a table's descriptor points to: its key fields and its default action's arguments."""
    cname = indices.tables[table.name]
    lines: list[str] = []
    if table.key:
        lines.append(f"static const sw_key_field fields_{cname}[] = {{")
        offset = 0
        for f in table.key:
            lines.append(f"    {{{c_string(f.name)}, {f.width}, {offset}, {f.nbytes}, {MATCH[f.match]}}},")
            offset += f.nbytes
        lines.append("};")
    data = default_args(table, program)
    if data:
        lines.append(f"static const uint8_t default_{cname}[] = {{{', '.join(map(str, data))}}};")
    return lines


def default_args(table: m.Table, program: m.Program) -> bytes:
    """The default action's arguments, big-endian and byte-padded."""
    if table.default is None:
        return b""
    params = program.actions[table.default.action].params
    return b"".join(
        arg.to_bytes((p.width + 7) // 8, "big") for p, arg in zip(params, table.default.args, strict=True)
    )


def _table(table: m.Table, program: m.Program, order: list[int], indices: Indices) -> str:
    cname = indices.tables[table.name]
    fields = f"fields_{cname}" if table.key else "NULL"
    profile = list(program.profiles).index(table.profile) if table.profile is not None else -1
    meter = list(program.meters).index(table.direct_meter) if table.direct_meter is not None else -1
    default = order.index(table.default.action) if table.default is not None else -1
    args = f"default_{cname}" if default_args(table, program) else "NULL"
    stride = max((table.key_bytes + 7) // 8 * 8, 8)
    return (
        f"{{{c_string(table.name)}, {MATCH[table.match]}, {IMPL[table.impl]}, {profile}, {table.max_size}, "
        f"{len(table.key)}, {fields}, {table.key_bytes}, {stride}, {_flag(table.with_counters)}, "
        f"{_flag(table.with_ageing)}, {meter}, {default}, {args}}}"
    )
