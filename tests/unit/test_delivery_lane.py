"""When the claims of a lane wait a moment for each other."""

import pytest

from infra.local.delivery_lane import has_backlog
from shared.stages.deliver import WaitingJobs

BUSY, OTHER = 1, 2


@pytest.mark.parametrize(
    ("waiting", "room", "answered", "expected"),
    [
        ({BUSY: 4}, {BUSY: 4}, {BUSY}, True),
        ({BUSY: 3}, {BUSY: 4}, {BUSY}, False),
        ({BUSY: 4}, {BUSY: 4}, set(), False),  # it never answers
        ({BUSY: 4, OTHER: 1}, {BUSY: 4}, {OTHER}, False),  # nor do the others wait for it
        ({BUSY: 4, OTHER: 10}, {BUSY: 4}, {OTHER}, True),
        ({BUSY: 0}, {BUSY: 0}, {BUSY}, False),
        ({}, {}, {BUSY}, False),
    ],
)
def test_a_backlog_is_of_subscriptions_that_answer(
    waiting: dict[int, int], room: dict[int, int], answered: set[int], expected: bool
) -> None:
    rows = [WaitingJobs(key, list(range(many)) or None) for key, many in waiting.items()]
    assert has_backlog(rows, room, 10, answered) is expected
