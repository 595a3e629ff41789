"""Action profiles, selectors and parser value sets of the runtime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from softswitch.native import NO_PORT
from tests.native.fake import (
    DROP_ACTION,
    EBUSY,
    EEXIST,
    EFULL,
    EINVAL,
    ENOENT,
    INDIRECT,
    NOP,
    OK,
    PLAIN,
    SELECTING,
    SELECTOR,
    SET,
    Fake,
    Refused,
    fake_device,
    set_args,
)

KEY = b"\0\0\0\1"


@pytest.fixture
def device() -> Iterator[Fake]:
    with fake_device() as made:
        yield made


def chosen(device: Fake, hashes: int) -> list[int]:
    """The ports that hash values 0, 1, ... choose."""
    return [device.apply(SELECTOR, KEY, hash_value=h).port for h in range(hashes)]


def test_an_entry_does_what_its_member_does(device: Fake) -> None:
    member = device.member(PLAIN, 5)
    entry = device.add(INDIRECT, KEY, target=member)
    hit = device.apply(INDIRECT, KEY)
    assert (hit.handle, hit.action, hit.port) == (entry, SET, 5)
    args = set_args(6)
    assert device.call("sw_member_modify", PLAIN, member, SET, args, len(args)) == OK
    assert device.apply(INDIRECT, KEY).port == 6
    assert device.entry_stats(INDIRECT, entry)[0] == 2
    assert device.apply(INDIRECT, b"\0\0\0\2").action == NOP


def test_a_profile_is_full_at_its_size(device: Fake) -> None:
    members = [device.member(PLAIN, port) for port in range(4)]
    with pytest.raises(Refused, match=str(EFULL)):
        device.member(PLAIN, 4)
    assert device.call("sw_member_delete", PLAIN, members[2]) == OK
    assert device.member(PLAIN, 4) not in members


def test_members_and_groups_in_use_stay(device: Fake) -> None:
    member, other = device.member(SELECTING, 1), device.member(SELECTING, 2)
    group = device.group([(member, 1, NO_PORT)])
    entry = device.add(SELECTOR, KEY, target=group, group=True)
    assert device.call("sw_member_delete", SELECTING, member) == EBUSY
    assert device.call("sw_group_delete", SELECTING, group) == EBUSY
    assert device.modify(SELECTOR, entry, target=other) == OK
    assert device.call("sw_member_delete", SELECTING, other) == EBUSY
    assert device.call("sw_group_delete", SELECTING, group) == OK
    assert device.call("sw_member_delete", SELECTING, member) == OK
    assert device.delete(SELECTOR, entry) == OK
    assert device.call("sw_member_delete", SELECTING, other) == OK


@pytest.mark.parametrize(
    ("members", "max_size", "error"),
    [
        ([(1, 0, NO_PORT)], 0, EINVAL),  # weight 0
        ([(1, 1, 512)], 0, EINVAL),  # no such port
        ([(1, 1, NO_PORT), (2, 1, NO_PORT), (1, 2, NO_PORT)], 0, EINVAL),  # twice
        ([(7, 1, NO_PORT)], 0, ENOENT),
        ([(1, 2, NO_PORT), (2, 1, NO_PORT)], 2, EFULL),
        ([(1, 0x7FFFFFFF, NO_PORT)], 0, EFULL),
    ],
)
def test_bad_groups_are_refused_and_change_nothing(
    device: Fake, members: list[tuple[int, int, int]], max_size: int, error: int
) -> None:
    assert [device.member(SELECTING, port) for port in range(2)] == [1, 2]
    with pytest.raises(Refused, match=str(error)):
        device.group(members, max_size)
    group = device.group([(2, 1, NO_PORT)], max_size)
    assert device.group_modify(group, members) == error
    device.add(SELECTOR, KEY, target=group, group=True)
    assert set(chosen(device, 4)) == {1}
    assert device.call("sw_member_delete", SELECTING, 1) == OK


def test_unknown_targets_are_refused(device: Fake) -> None:
    for target, group in ((0, False), (1, False), (1, True)):
        with pytest.raises(Refused, match=str(ENOENT)):
            device.add(SELECTOR, KEY, target=target, group=group)
    with pytest.raises(Refused, match=str(EINVAL)):
        device.group([], profile=PLAIN)  # no selector


def test_a_group_chooses_by_the_hash_in_the_order_of_its_members_handles(device: Fake) -> None:
    members = [device.member(SELECTING, port) for port in (11, 12, 13)]
    group = device.group([(m, 1, NO_PORT) for m in (members[2], members[0], members[1])])
    device.add(SELECTOR, KEY, target=group, group=True)
    assert chosen(device, 6) == [11, 12, 13, 11, 12, 13]
    assert device.apply(SELECTOR, KEY, hash_value=0xFFFFFFFF).port == (11, 12, 13)[0xFFFFFFFF % 3]


def test_a_new_member_takes_the_lowest_free_place(device: Fake) -> None:
    members = [device.member(SELECTING, port) for port in (11, 12, 13)]
    assert device.call("sw_member_delete", SELECTING, members[0]) == OK
    late = device.member(SELECTING, 14)  # BMv2 gives it the handle of the deleted one
    group = device.group([(m, 1, NO_PORT) for m in (*members[1:], late)])
    device.add(SELECTOR, KEY, target=group, group=True)
    assert chosen(device, 3) == [14, 12, 13]


def test_weights_repeat_members_as_copies_behind_them(device: Fake) -> None:
    first, second = device.member(SELECTING, 11), device.member(SELECTING, 12)
    group = device.group([(first, 3, NO_PORT), (second, 1, NO_PORT)])
    device.add(SELECTOR, KEY, target=group, group=True)
    assert chosen(device, 4) == [11, 12, 11, 11]
    assert device.group_modify(group, [(first, 1, NO_PORT), (second, 2, NO_PORT)]) == OK
    assert chosen(device, 3) == [11, 12, 12]
    third = device.member(SELECTING, 13)  # in the place of the first copy, which is gone
    assert device.group_modify(group, [(first, 1, NO_PORT), (second, 1, NO_PORT), (third, 1, NO_PORT)]) == OK
    assert chosen(device, 3) == [11, 12, 13]


def test_members_whose_watch_port_is_down_are_left_out(device: Fake) -> None:
    members = [device.member(SELECTING, port) for port in (11, 12, 13)]
    group = device.group([(members[0], 1, 1), (members[1], 1, 2), (members[2], 1, 1)])
    device.add(SELECTOR, KEY, target=group, group=True)
    assert chosen(device, 3) == [11, 12, 13]
    assert device.call("sw_port_set_up", 2, False) == OK
    assert chosen(device, 4) == [11, 13, 11, 13]
    assert device.call("sw_port_set_up", 1, False) == OK
    assert device.apply(SELECTOR, KEY).action == DROP_ACTION
    assert device.stats().no_live_member == 1
    assert device.call("sw_port_set_up", 2, True) == OK
    assert chosen(device, 3) == [12, 12, 12]


def test_a_port_that_does_not_exist_is_down(device: Fake) -> None:
    assert device.call("sw_port_remove", 99) == OK
    members = [device.member(SELECTING, port) for port in (11, 12)]
    group = device.group([(members[0], 1, 99), (members[1], 1, NO_PORT)])
    device.add(SELECTOR, KEY, target=group, group=True)
    assert Counter(chosen(device, 10)) == {12: 10}


def test_an_empty_group_drops_and_counts(device: Fake) -> None:
    device.add(SELECTOR, KEY, target=device.group([]), group=True)
    assert [device.apply(SELECTOR, KEY).action for _ in range(2)] == [DROP_ACTION] * 2
    assert device.stats().no_live_member == 2


def test_a_default_entry_can_point_at_a_group(device: Fake) -> None:
    group = device.group([(device.member(SELECTING, 11), 1, NO_PORT)])
    assert device.call("sw_table_set_default_target", SELECTOR, group, True) == OK
    hit = device.apply(SELECTOR, KEY)
    assert (hit.handle, hit.port) == (0, 11)
    assert device.call("sw_group_delete", SELECTING, group) == EBUSY
    assert device.call("sw_table_reset_default", SELECTOR) == OK
    assert device.apply(SELECTOR, KEY).action == NOP
    assert device.call("sw_group_delete", SELECTING, group) == OK


# ---- value sets ----

V16, V72 = range(2)


def has(device: Fake, value_set: int, value: bytes) -> bool:
    return bool(device.call("sw_value_set_has", value_set, value))


def test_value_set_members_match_under_their_masks(device: Fake) -> None:
    assert not has(device, V16, b"\x08\x00")
    assert device.call("sw_value_set_add", V16, b"\x08\x00", b"\xff\xff") == OK
    assert device.call("sw_value_set_add", V16, b"\x81\x23", b"\xff\x00") == OK
    assert device.call("sw_value_set_add", V16, b"\x81\x45", b"\xff\x00") == EEXIST
    assert [has(device, V16, v) for v in (b"\x08\x00", b"\x08\x01", b"\x81\xff")] == [True, False, True]
    assert device.call("sw_value_set_delete", V16, b"\x81\x00", b"\xff\x00") == OK
    assert device.call("sw_value_set_delete", V16, b"\x81\x00", b"\xff\x00") == ENOENT
    assert [has(device, V16, v) for v in (b"\x08\x00", b"\x81\xff")] == [True, False]


def test_a_value_set_of_many_wide_members_is_cleared(device: Fake) -> None:
    values = [i.to_bytes(9, "big") for i in range(1000)]
    assert all(device.call("sw_value_set_add", V72, value, None) == OK for value in values)
    assert all(has(device, V72, value) for value in values)
    assert not has(device, V72, b"\1" + values[0][1:])
    assert device.call("sw_value_set_clear", V72) == OK
    assert not any(has(device, V72, value) for value in values)
    assert device.call("sw_value_set_clear", 2) == ENOENT
