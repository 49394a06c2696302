"""Each refused row is told of once an hour."""

from dataclasses import replace

from hooksaga.core.errors import RefusedRow
from hooksaga.worker.refused_rows import AGAIN_SECONDS, RefusedRows


def test_each_row_is_told_of_once_and_again_after_an_hour() -> None:
    now = 0.0
    rows = RefusedRows(lambda: now)
    one, other = RefusedRow("rule", saga_id=1), RefusedRow("rule", saga_id=2)
    assert rows.new_of([one]) == [one]
    assert rows.new_of([one, other]) == [other]
    assert rows.new_of([replace(one, reason="another"), other]) == []
    now = AGAIN_SECONDS
    assert rows.new_of([one, other]) == [one, other]
