"""Named statements as they are sent."""

import pytest
from psycopg import _queries

from hooksaga.adapters.queries import load_queries

PIPELINE = {
    "accept_events": ["insert_events"],
    "route_events": ["route_outbox"],
    "orchestrate": ["flow_to_start", "start_due", "finished_jobs", "apply_results"],
    "deliver": ["claim_jobs", "record_results"],
}


@pytest.mark.parametrize(
    ("stage", "name"), [(stage, name) for stage, names in PIPELINE.items() for name in names]
)
def test_what_runs_for_each_event_is_short_enough_to_be_remembered(stage: str, name: str) -> None:
    statement = load_queries(stage)[name]
    assert len(statement.encode()) <= _queries.MAX_CACHED_STATEMENT_LENGTH
    assert statement.count("%(") <= _queries.MAX_CACHED_STATEMENT_PARAMS


def test_neither_comments_nor_indentation_are_sent() -> None:
    lines = load_queries("orchestrate")["start_due"].splitlines()
    assert len(lines) > 50
    assert [line for line in lines if line.startswith((" ", "--"))] == []
