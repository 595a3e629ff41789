"""What to write to make a device hold the desired entities: only the difference, in an order that breaks nothing.

Updates of one Write may be carried out in any order, so what depends on each other goes into successive Writes. What an
entity refers to is there before it and leaves after it; new entries are in place before old ones go: make before break.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from controller.entities import Entity, Key, TableEntry

BATCH = 500  # updates of one Write


class Verb(StrEnum):
    """What an update does; finsy's signs."""

    INSERT = "+"
    MODIFY = "~"
    DELETE = "-"


@dataclass(frozen=True, slots=True)
class Update:
    """One change of one entity."""

    verb: Verb
    entity: Entity

    def __str__(self) -> str:
        return f"{self.verb} {self.entity}"


@dataclass(frozen=True, slots=True)
class Difference:
    """What separates a device from what it should hold."""

    insert: tuple[Entity, ...]
    modify: tuple[Entity, ...]
    delete: tuple[Entity, ...]

    def __len__(self) -> int:
        return len(self.insert) + len(self.modify) + len(self.delete)

    def updates(self) -> Iterator[Update]:
        """All of it, not yet in order."""
        for verb, entities in ((Verb.INSERT, self.insert), (Verb.MODIFY, self.modify), (Verb.DELETE, self.delete)):
            for entity in entities:
                yield Update(verb, entity)


def difference(desired: Iterable[Entity], installed: Iterable[Entity]) -> Difference:
    """Compares what is not the same on both sides by key; the order of neither matters.

    Raises ValueError where desired has two new entities with one key.
    """
    desired, installed = frozenset(desired), frozenset(installed)
    wanted: dict[Key, Entity] = {}
    for entity in desired - installed:
        if wanted.setdefault(entity.key, entity) != entity:
            raise ValueError(f"two different entities with one key: {wanted[entity.key]} and {entity}")
    present = {entity.key: entity for entity in installed - desired}
    return Difference(
        insert=tuple(entity for key, entity in wanted.items() if key not in present),
        modify=tuple(entity for key, entity in wanted.items() if key in present),
        delete=tuple(entity for key, entity in present.items() if key not in wanted),
    )


def batches(change: Difference, rank: Callable[[Entity], int], size: int = BATCH) -> list[list[Update]]:
    """The Writes that carry out the change, one after the other.

    ``rank`` is low for what others refer to. Inserts and modifications go by rank upwards, then deletions downwards.
    Within a rank the order is that of tables and matches, so that equal changes are equal Writes.
    """
    additions: dict[int, list[Update]] = defaultdict(list)
    removals: dict[int, list[Update]] = defaultdict(list)
    for update in change.updates():
        (removals if update.verb is Verb.DELETE else additions)[rank(update.entity)].append(update)
    steps = [additions[level] for level in sorted(additions)]
    steps += [removals[level] for level in sorted(removals, reverse=True)]
    writes: list[list[Update]] = []
    for step in steps:
        ordered = sorted(step, key=_order)
        writes += [ordered[at : at + size] for at in range(0, len(ordered), size)]
    return writes


def _order(update: Update) -> tuple[object, ...]:
    entity = update.entity
    if isinstance(entity, TableEntry):
        return (0, entity.table, str(update.verb), entity.priority, repr(entity.match))
    return (1, "", str(update.verb), 0, repr(entity))
