"""What is wrong where it is not the sanitizers that say so."""

from __future__ import annotations


class Finding(AssertionError):
    """The softswitch did what it must not do."""


def require(holds: bool, what: str) -> None:
    """Raises Finding unless ``holds``."""
    if not holds:
        raise Finding(what)
