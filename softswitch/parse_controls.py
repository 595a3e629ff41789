"""Tables, conditionals and action profiles of BMv2 JSON."""

from __future__ import annotations

from collections.abc import Mapping

from softswitch import model as m
from softswitch.json_node import Node
from softswitch.parse_expressions import Names, read_expression, read_field

IMPLS = ("simple", "indirect", "indirect_ws")
MATCHES = ("exact", "lpm", "ternary", "range")
MAX_ENTRIES = 1 << 24
MAX_KEY_BYTES = 512  # SW_KEY_WORDS
MAX_LPM_BITS = 1024  # SW_LPM_WORDS


def read_profiles(pipeline: Node, names: Names) -> list[m.Profile]:
    """The action profiles of a pipeline."""
    profiles: list[m.Profile] = []
    for node in pipeline.items("action_profiles"):
        selector = node.get("selector")
        algo: str | None = None
        inputs: tuple[m.Expr, ...] = ()
        if selector is not None:
            algo = selector["algo"].text()
            inputs = tuple(read_expression(n, names) for n in selector["input"].items())
        profiles.append(m.Profile(node["name"].text(), node["max_size"].number(), algo, inputs, node.path))
    return profiles


def read_pipeline(node: Node, names: Names, actions: Mapping[int, m.Action]) -> m.Pipeline:
    """A control with all its nodes; what comes next is always a node that exists, and no node comes twice."""
    known: set[str] = set()
    for n in (n for key in ("tables", "conditionals", "action_calls") for n in node.items(key)):
        if n["name"].text() in known:
            raise n.fail(f"the name {n['name'].text()!r} is taken")
        known.add(n["name"].text())
    profiles = {n["name"].text(): n for n in node.items("action_profiles")}
    nodes: dict[str, m.Node] = {}
    for n in node.items("tables"):
        nodes[n["name"].text()] = _table(n, names, actions, known, profiles)
    for n in node.items("conditionals"):
        nodes[n["name"].text()] = m.Conditional(
            n["name"].text(), read_expression(n["expression"], names),
            _next(n, "true_next", known), _next(n, "false_next", known), n.path,
        )  # fmt: skip
    for n in node.items("action_calls"):
        action = _action(n["action_id"], actions)
        if action.params:
            raise n.fail(f"action {action.name!r} has parameters and cannot be called directly")
        nodes[n["name"].text()] = m.ActionCall(n["name"].text(), action.ident, _next(n, "next_node", known), n.path)
    first = _next(node, "init_table", known)
    pipeline = m.Pipeline(node["name"].text(), first, nodes)
    _check_acyclic(node, pipeline)
    return pipeline


def successors(node: m.Node) -> list[str]:
    """The names of all nodes that may come next."""
    match node:
        case m.Conditional():
            found = [node.true_next, node.false_next]
        case m.ActionCall():
            found = [node.next]
        case m.Table():
            found = [*node.next_by_action.values(), node.next_hit, node.next_miss, node.base_next]
    return [name for name in found if name is not None]


def _check_acyclic(where: Node, pipeline: m.Pipeline) -> None:
    done: set[str] = set()
    for root in pipeline.nodes:
        path: dict[str, list[str]] = {}
        stack = [root] if root not in done else []
        while stack:
            name = stack[-1]
            rest = path.setdefault(name, [n for n in successors(pipeline.nodes[name]) if n not in done])
            if not rest:
                done.add(stack.pop())
                path.pop(name, None)
                continue
            following = rest.pop()
            if following in path:
                raise where.fail(f"the control flow comes back to {following!r}")
            if following not in done:
                stack.append(following)


def _next(node: Node, key: str, known: set[str]) -> str | None:
    target = node.get(key)
    if target is None:
        return None
    if target.text() not in known:
        raise target.fail(f"names no table, conditional or action call: {target.text()!r}")
    return target.text()


def _action(node: Node, actions: Mapping[int, m.Action]) -> m.Action:
    found = actions.get(node.number())
    if found is None:
        raise node.fail(f"is no action's id: {node.value}")
    return found


def _call(node: Node, actions: Mapping[int, m.Action]) -> m.Call:
    action = _action(node["action_id"], actions)
    args = [n.hexstr() for n in node["action_data"].items()]
    if len(args) != len(action.params):
        raise node["action_data"].fail(f"action {action.name!r} has {len(action.params)} parameters, not {len(args)}")
    return m.Call(action.ident, tuple(a & ((1 << p.width) - 1) for a, p in zip(args, action.params, strict=True)))


def _key_field(node: Node, names: Names) -> m.KeyField:
    match = node["match_type"].text()
    if match == "valid":
        target = m.FieldRef(node["target"].named("header", names.headers.get).name, "$valid$")
        width = 8  # BMv2 keeps a byte for it
    else:
        target = read_field(node["target"], names)
        field = m.VALID if target.field == "$valid$" else names.headers[target.header].type.by_name[target.field]
        if field.varbit:
            raise node["target"].fail("a varbit field cannot be matched")
        width = field.width
    if match not in (*MATCHES, "valid"):
        raise node["match_type"].fail(f"must be {', '.join(MATCHES)} or valid, is {match!r}")
    name = node["name"].text() if node.has("name") else f"{target.header}.{target.field}"
    mask = node["mask"].hexstr() & ((1 << width) - 1) if node.has("mask") else None
    return m.KeyField(name, match, target, width, mask)


def _table(
    node: Node, names: Names, actions: Mapping[int, m.Action], known: set[str], profiles: Mapping[str, Node]
) -> m.Table:
    impl, match = node["type"].text(), node["match_type"].text()
    if impl not in IMPLS:
        raise node["type"].fail(f"must be {', '.join(IMPLS)}, is {impl!r}")
    if match not in MATCHES:
        raise node["match_type"].fail(f"must be {', '.join(MATCHES)}, is {match!r}")
    profile = None
    if impl != "simple":
        profile = node["action_profile"].text()
        if profile not in profiles:
            raise node["action_profile"].fail(f"names no action profile: {profile!r}")
    key = tuple(_key_field(n, names) for n in node["key"].items())
    _check_match(node, match, key)
    ids = tuple(_action(n, actions).ident for n in node["action_ids"].items())
    nexts = {k: _next(node["next_tables"], k, known) for k, _ in node["next_tables"].pairs()}
    default = node.get("default_entry")
    default_entry = _call(default, actions) if default is not None else None
    runs = {*ids, *([default_entry.action] if default_entry is not None else [])}
    if len({actions[i].name for i in runs}) != len(runs):
        raise node["action_ids"].fail("two actions have one name")
    entries = tuple(_entry(n, key, actions) for n in node.items("entries"))
    if any(entry.call.action not in ids for entry in entries):
        raise node["entries"].fail("an entry's action is not one of the table's")
    meter = node.get("direct_meters")
    if meter is not None and meter.text() not in names.meters:
        raise meter.fail(f"names no meter array: {meter.text()!r}")
    constant = [
        default is not None and default.has(k) and default[k].flag() for k in ("action_const", "action_entry_const")
    ]
    return m.Table(
        name=node["name"].text(),
        match=match,
        impl=impl,
        profile=profile,
        max_size=node["max_size"].number(0, MAX_ENTRIES) if node.has("max_size") else len(entries),
        key=key,
        actions=ids,
        with_counters=node.has("with_counters") and node["with_counters"].flag(),
        with_ageing=node.has("support_timeout") and node["support_timeout"].flag(),
        direct_meter=meter.text() if meter is not None else None,
        next_by_action={i: nexts.get(actions[i].name) for i in ids},
        next_hit=nexts.get("__HIT__"),
        next_miss=nexts.get("__MISS__"),
        splits_on_hit="__HIT__" in nexts or "__MISS__" in nexts,
        base_next=_next(node, "base_default_next", known),
        default=default_entry,
        default_action_const=constant[0],
        default_entry_const=constant[1],
        entries=entries,
        path=node.path,
    )


def _check_match(node: Node, match: str, key: tuple[m.KeyField, ...]) -> None:
    """The table's kind must be able to hold its fields' kinds."""
    allowed = {
        "exact": {"exact", "valid"},
        "lpm": {"exact", "valid", "lpm"},
        "ternary": {"exact", "valid", "lpm", "ternary"},
        "range": {"exact", "valid", "lpm", "ternary", "range"},
    }[match]
    for field in key:
        if field.match not in allowed:
            raise node["key"].fail(f"field {field.name!r} is {field.match}, the table only {match}")
    for field in key:
        if field.match == "lpm" and field.width > MAX_LPM_BITS:
            raise node["key"].fail(f"lpm field {field.name!r} has {field.width} bits; {MAX_LPM_BITS} is the most")
    if sum(f.nbytes for f in key) > MAX_KEY_BYTES:
        raise node["key"].fail(f"takes {sum(f.nbytes for f in key)} bytes; {MAX_KEY_BYTES} is the most")
    if match == "lpm" and sum(f.match == "lpm" for f in key) != 1:
        raise node["key"].fail("a table that is lpm has exactly one lpm field")


def _entry(node: Node, key: tuple[m.KeyField, ...], actions: Mapping[int, m.Action]) -> m.Entry:
    parts = list(node["match_key"].items())
    if len(parts) != len(key):
        raise node["match_key"].fail(f"has {len(parts)} fields, the table {len(key)}")
    fields: list[m.EntryField] = []
    for part, field in zip(parts, key, strict=True):
        full = (1 << field.width) - 1
        kind = part["match_type"].text()
        if kind != field.match:
            raise part["match_type"].fail(f"must be {field.match}, is {kind!r}")
        match kind:
            case "exact":
                fields.append(m.EntryField(part["key"].hexstr() & full))
            case "valid":
                fields.append(m.EntryField(int(part["key"].flag())))
            case "lpm":
                length = part["prefix_length"].number(0, field.width)
                fields.append(m.EntryField(part["key"].hexstr() & full, prefix_len=length))
            case "ternary":
                fields.append(m.EntryField(part["key"].hexstr() & full, mask=part["mask"].hexstr() & full))
            case "range":
                fields.append(m.EntryField(part["start"].hexstr() & full, high=part["end"].hexstr() & full))
    priority = node["priority"].number(-(2**31)) if node.has("priority") else 0
    return m.Entry(tuple(fields), _call(node["action_entry"], actions), priority)
