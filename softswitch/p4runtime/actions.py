"""Actions: p4.v1.Action to the device's calls, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from finsy.proto import p4r

from softswitch import model
from softswitch.device_types import Call
from softswitch.p4runtime import bytestrings
from softswitch.p4runtime.errors import invalid, unknown_id
from softswitch.p4runtime.p4info import ActionInfo


class ActionReader:
    """Reads actions of one P4Info and its program."""

    def __init__(self, actions: Mapping[int, ActionInfo], program: model.Program) -> None:
        self._actions = actions
        self._program = program
        self._params = {
            a.id: {p.id: (i, p.width, f"action {a.name}: parameter {p.name}") for i, p in enumerate(a.params)}
            for a in actions.values()
        }

    def read(self, action: p4r.Action, valid: Iterable[int], owner: str) -> Call:
        """The call; ``valid`` are the ids allowed in ``owner``. Values that are not canonical are rewritten in place.
        Raises P4Error INVALID_ARGUMENT."""
        ident = action.action_id
        if ident not in valid:
            error = unknown_id("action", ident, (self._actions[i] for i in valid))
            raise invalid(f"{owner}: {error.message}")
        info, params = self._actions[ident], self._params[ident]
        args = [-1] * len(params)
        for param in action.params:
            known = params.get(param.param_id)
            if known is None:
                raise invalid(f"action {info.name}: {unknown_id('parameter', param.param_id, info.params).message}")
            index, width, what = known
            if args[index] != -1:
                raise invalid(f"{what} is there twice")
            raw = param.value
            args[index] = value = bytestrings.decode(raw, width, what)
            if not bytestrings.is_canonical(raw):
                param.value = bytestrings.encode(value)
        if -1 in args:
            missing = info.params[args.index(-1)]
            raise invalid(f"action {info.name}: parameter {missing.name} ({missing.id}) is missing")
        return Call(info.name, tuple(args))

    def of_program(self, call: model.Call, valid: Iterable[int]) -> p4r.Action | None:
        """The Action of a call that is written in the program; None where P4Info does not list it."""
        name = self._program.actions[call.action].name
        for ident in valid:
            info = self._actions[ident]
            if info.name == name:
                message = p4r.Action(action_id=ident)
                for param, value in zip(info.params, call.args, strict=True):
                    message.params.add(param_id=param.id, value=bytestrings.encode(value))
                return message
        return None
