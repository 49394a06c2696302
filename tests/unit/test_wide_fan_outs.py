"""Who overtakes an event with very many subscriptions, and for how long."""

from uuid import UUID

import pytest

from hooksaga.stages.route_events import RoutedEvent
from hooksaga.worker import wide_fan_outs
from hooksaga.worker.wide_fan_outs import BEHIND, FORGOTTEN_SECONDS, MOST_OVERTAKING, NARROW, WideFanOuts

FIRST_WIDE, SECOND_WIDE, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)
PART = 500


def routed(webhook_id: UUID, sagas: int) -> RoutedEvent:
    return RoutedEvent(1, webhook_id, None, 0.0, list(range(sagas)))


def part(webhook_id: UUID, sagas: int = PART) -> RoutedEvent:
    return RoutedEvent(1, webhook_id, None, 0.0, list(range(sagas)), whole=False)


def test_nothing_overtakes_where_nothing_is_wide() -> None:
    wide = WideFanOuts()
    wide.note_routed([routed(FIRST_WIDE, PART), routed(OTHER, 1)])
    assert (wide.under_way, wide.take_overtaking(10)) == (False, [])
    assert not wide.is_overtaken_by(OTHER)


def test_narrow_events_overtake_until_the_last_delivery_of_the_wide_one_was_begun() -> None:
    wide = WideFanOuts()
    wide.note_routed([part(FIRST_WIDE), routed(OTHER, NARROW), routed(OTHER, NARROW + 1)])
    assert wide.take_overtaking(PART) == list(range(NARROW))
    assert wide.is_overtaken_by(OTHER)
    assert not wide.is_overtaken_by(FIRST_WIDE)
    wide.note_begun([FIRST_WIDE] * (PART - 1))
    assert wide.under_way
    wide.note_begun([OTHER, FIRST_WIDE])
    assert not wide.under_way
    wide.note_routed([routed(OTHER, 1)])
    assert not wide.has_overtaking


def test_all_parts_of_an_event_are_waited_for_and_the_last_overtakes_nothing() -> None:
    wide = WideFanOuts()
    wide.note_routed([part(FIRST_WIDE)])
    wide.note_routed([part(FIRST_WIDE)])
    wide.note_routed([routed(FIRST_WIDE, 2)])
    assert not wide.has_overtaking
    wide.note_begun([FIRST_WIDE] * (2 * PART + 1))
    assert wide.under_way
    wide.note_begun([FIRST_WIDE])
    assert not wide.under_way


def test_nothing_overtakes_what_is_nearly_begun() -> None:
    wide = WideFanOuts()
    wide.note_routed([part(FIRST_WIDE, BEHIND), routed(OTHER, 1)])
    assert (wide.under_way, wide.has_overtaking) == (True, False)
    wide.note_routed([part(FIRST_WIDE, 1), routed(OTHER, 1)])
    assert wide.has_overtaking


def test_each_wide_event_is_waited_for() -> None:
    wide = WideFanOuts()
    wide.note_routed([part(FIRST_WIDE)])
    wide.note_routed([part(SECOND_WIDE)])
    wide.note_begun([FIRST_WIDE] * PART)
    assert wide.under_way
    wide.note_begun([SECOND_WIDE] * PART)
    assert not wide.under_way


def test_those_that_overtake_are_bounded_and_leave_in_order() -> None:
    wide = WideFanOuts()
    wide.note_routed([part(FIRST_WIDE)])
    for _ in range(MOST_OVERTAKING // NARROW + 1):
        wide.note_routed([routed(OTHER, NARROW)])
    assert wide.take_overtaking(2) == [0, 1]
    assert len(wide.take_overtaking(MOST_OVERTAKING)) == MOST_OVERTAKING - 2


def test_one_that_another_process_delivers_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = WideFanOuts()
    wide.note_routed([part(FIRST_WIDE)])
    monkeypatch.setattr(wide_fan_outs, "FORGOTTEN_SECONDS", -1.0)
    assert not wide.under_way


def test_each_is_forgotten_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that moves does not keep those that stand still."""
    now = 1000.0
    monkeypatch.setattr(wide_fan_outs.time, "monotonic", lambda: now)
    wide = WideFanOuts()
    wide.note_routed([part(FIRST_WIDE), part(SECOND_WIDE)])
    for _ in range(3):
        now += FORGOTTEN_SECONDS * 0.9
        wide.note_begun([SECOND_WIDE])
        assert wide.under_way
    assert wide.is_overtaken_by(FIRST_WIDE)
    assert not wide.is_overtaken_by(SECOND_WIDE)
    wide.note_begun([SECOND_WIDE] * (PART - 3))
    assert not wide.under_way
