"""How fast an event with very many subscriptions is routed, beside others and alone."""

from collections.abc import Callable
from uuid import UUID

import pytest

from hooksaga.stages.route_events import PART_SIZE, RoutedEvent
from hooksaga.worker import part_pace
from hooksaga.worker.part_pace import ALONE_SECONDS, PAUSE_SECONDS, PartPace

Tick = Callable[[float], None]


@pytest.fixture
def tick(monkeypatch: pytest.MonkeyPatch) -> Tick:
    """Lets so many seconds pass, of a clock that stands still otherwise."""
    now = 1000.0
    monkeypatch.setattr(part_pace.time, "monotonic", lambda: now)

    def tick(seconds: float) -> None:
        nonlocal now
        now += seconds

    return tick


def routed(*, whole: bool) -> RoutedEvent:
    return RoutedEvent(1, UUID(int=1), None, 0.0, [], whole=whole)


PART, OTHER = routed(whole=False), routed(whole=True)


def test_alone_it_goes_on_at_once_in_large_parts(tick: Tick) -> None:
    pace = PartPace(1000)
    for _ in range(3):
        assert (pace.part_size, pace.may_go_on()) == (PART_SIZE, True)
        pace.note_routed([PART], went_on=True)
        assert pace.until_next_part() == 0


def test_beside_others_so_many_a_second(tick: Tick) -> None:
    pace = PartPace(1000)
    pace.note_routed([OTHER], went_on=True)
    started = 0
    for _ in range(20):
        assert pace.may_go_on()
        started += pace.part_size
        pace.note_routed([PART, OTHER], went_on=True)
        assert not pace.may_go_on()
        assert pace.until_next_part() == pytest.approx(PAUSE_SECONDS)
        pace.note_routed([OTHER], went_on=False)  # it still waits
        tick(PAUSE_SECONDS)
    assert started == 1000


def test_others_that_have_stopped_coming_are_not_waited_for(tick: Tick) -> None:
    pace = PartPace(1000)
    pace.note_routed([PART, OTHER], went_on=True)
    tick(ALONE_SECONDS)
    assert (pace.part_size, pace.may_go_on()) == (PART_SIZE, True)


def test_what_has_ended_is_not_waited_for(tick: Tick) -> None:
    pace = PartPace(1000)
    assert pace.until_next_part() is None
    pace.note_routed([PART, OTHER], went_on=True)
    tick(PAUSE_SECONDS)
    pace.note_routed([OTHER], went_on=True)
    assert pace.until_next_part() is None


@pytest.mark.parametrize(("per_second", "part_size"), [(1, 1), (10_000, PART_SIZE)])
def test_the_slowest_and_the_fastest_pace(tick: Tick, per_second: int, part_size: int) -> None:
    pace = PartPace(per_second)
    pace.note_routed([OTHER], went_on=True)
    assert pace.part_size == part_size
