"""The levels of `latency` through the real functions: windows fill batches, and cost latency."""

import pytest

from bench.latency_levels import measure, table
from hooksaga.aws.latency import LEVELS, Latency
from hooksaga.local.sqs.event_source import QueueMapping, check_mapping

pytestmark = pytest.mark.sqs


@pytest.mark.long
def test_a_window_saves_invocations_and_takes_its_time() -> None:
    """Without windows, an event that comes alone takes four invocations by messages."""
    balanced = measure(Latency.BALANCED, rate=10, seconds=3)
    assert balanced.events == 30
    assert balanced.invocations < 3
    assert balanced.batches["delivery"] > 1.5
    assert (balanced.latency_ms.p50 or 0) > 2000
    assert "balanced" in table([balanced])


@pytest.mark.parametrize("level", Latency)
def test_the_local_event_source_takes_the_mappings_that_aws_takes(level: Latency) -> None:
    for one in LEVELS[level].values():
        mapping = QueueMapping("url", batch_size=one.size, window_seconds=one.window_seconds)
        check_mapping(mapping, 45, {"VisibilityTimeout": "270"})
