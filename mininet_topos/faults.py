"""Loss, corruption, delay on a link: who can do it, does it, and says that it did.

A link that ends at a softswitch is made faulty by that softswitch, in both directions: it hands its frames to the
driver past the kernel's queueing disciplines, where netem would not see them. Any other link needs netem in the kernel.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from typer import BadParameter

from mininet_topos.live import LiveError, Network, Node
from mininet_topos.topology import End
from softswitch.cli.units import amount, duration_ns, probability
from softswitch.control import ControlClient, ControlError
from softswitch.device import Fault

__all__ = ["Fault", "clear_fault", "has_netem", "parse", "set_fault"]


def has_netem() -> bool:
    """Whether this kernel has netem: tried in a namespace that is gone at once."""
    trial = ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
    return subprocess.run(trial, capture_output=True, check=False).returncode == 0


def parse(words: list[str]) -> Fault:
    """``loss=1% delay=2ms ...`` by the names of ``softswitch run --fault``, and ``down``. Raises LiveError."""
    values: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        try:
            field, reader = _READERS[name]
            values[field] = reader(value)
        except KeyError:
            raise LiveError(f"{word!r} is not a fault; faults are {', '.join(_READERS)}") from None
        except BadParameter as error:
            raise LiveError(f"{name}: {error.message}") from error
    return Fault(**values)


# what a user writes: the field of Fault, and how its value is read
_READERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "down": ("down", lambda _: True),
    **{name: (name, probability) for name in ("loss", "burst_enter", "burst_exit", "corrupt", "duplicate")},
    **{name: (f"{name}_ns", duration_ns) for name in ("delay", "jitter")},
    "rate_bps": ("rate_bps", amount),
}


def set_fault(network: Network, sender: str, receiver: str, fault: Fault) -> list[str]:
    """Every packet that ``sender`` sends to ``receiver`` meets the fault, which replaces what was set before.

    Returns a line for each link between them that says who does it. Raises LiveError where nobody can.
    """
    said = []
    for link in network.links_between(sender, receiver):
        a, b = link.at(sender), link.other(sender)
        said.append(f"{a} -> {b}: {_text(fault)} by {_apply(network, a, b, fault)}")
    return said


def clear_fault(network: Network, a: str, b: str) -> list[str]:
    """No fault in either direction between two nodes, with a line for each as from ``set_fault``."""
    return set_fault(network, a, b, Fault()) + set_fault(network, b, a, Fault())


def _apply(network: Network, a: End, b: End, fault: Fault) -> str:
    for end, direction in ((a, "tx"), (b, "rx")):
        node = network.nodes[end.node]
        if node.control:
            _softswitch(node, end.port, direction, fault)
            return f"softswitch {end.node}"
    node, ifname = network.nodes[a.node], network.interface(a)
    if fault == Fault():
        if "netem" in node.output("tc", "qdisc", "show", "dev", ifname):
            node.output("tc", "qdisc", "del", "dev", ifname, "root")
        return f"netem at {a.node}"
    if not has_netem():
        raise LiveError(f"{a} -> {b}: this kernel has no netem and no end is a softswitch: no faults here")
    node.output("tc", "qdisc", "replace", "dev", ifname, "root", "netem", *_netem(fault))
    return f"netem at {a.node}"


def _softswitch(node: Node, port: int, direction: str, fault: Fault) -> None:
    try:
        with ControlClient(Path(node.control)) as client:
            client.call("faults.set", port=port, direction=direction, **asdict(fault))
    except ControlError as error:
        raise LiveError(f"{node.name}: {error}") from error


def _netem(fault: Fault) -> list[str]:
    """The same fault in tc's words."""
    words: list[str] = []
    if fault.down:
        words += ["loss", "100%"]
    elif fault.burst_enter:
        words += ["loss", "gemodel", f"{fault.burst_enter:%}", f"{fault.burst_exit:%}", "100%", f"{fault.loss:%}"]
    elif fault.loss:
        words += ["loss", f"{fault.loss:%}"]
    if fault.corrupt:
        words += ["corrupt", f"{fault.corrupt:%}"]
    if fault.duplicate:
        words += ["duplicate", f"{fault.duplicate:%}"]
    if fault.delay_ns or fault.jitter_ns:
        words += ["delay", f"{fault.delay_ns}ns", f"{fault.jitter_ns}ns"]
    if fault.rate_bps:
        words += ["rate", f"{fault.rate_bps}bit"]
    return words


def _text(fault: Fault) -> str:
    changed = {name: value for name, value in asdict(fault).items() if value != getattr(Fault(), name)}
    return ", ".join(f"{name} {value}" for name, value in changed.items()) or "no fault"
