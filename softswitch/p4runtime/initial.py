"""What a table holds when its program is loaded: entries and default entry, as P4Runtime shows them."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r

from softswitch.p4runtime.actions import ActionReader
from softswitch.p4runtime.match import MatchKey, from_program, to_message
from softswitch.p4runtime.p4info import TableInfo


def default_action(info: TableInfo, actions: ActionReader) -> p4r.Action | None:
    """The default action; None where P4Info does not say it."""
    if not info.default.action_id:
        return None
    action = p4r.Action(action_id=info.default.action_id)
    for argument in info.default.arguments:
        action.params.add(param_id=argument.param_id, value=argument.value)
    return action


def initial_entries(info: TableInfo, actions: ActionReader) -> Iterator[tuple[p4r.TableEntry, int, MatchKey]]:
    """Entry, priority and match key of what the program puts into the table.

    BMv2 JSON counts priorities from 1, the best; P4Runtime shows N to 1 for N entries, as p4c's entries files do.
    """
    worst = max((entry.priority for entry in info.program.entries), default=0)
    for entry in info.program.entries:
        call = actions.of_program(entry.call, info.actions)
        if call is None:
            continue
        key = tuple(from_program(field, part) for field, part in zip(info.fields, entry.fields, strict=True))
        priority = worst + 1 - entry.priority if info.needs_priority else 0
        message = p4r.TableEntry(table_id=info.id, priority=priority, is_const=info.const)
        message.match.extend(to_message(f, v) for f, v in zip(info.fields, key, strict=True) if v is not None)
        message.action.action.CopyFrom(call)
        yield message, priority, key
