"""docs/operations/observability.md says of every metric, view and log line what there is."""

import re
from pathlib import Path

import msgspec

from hooksaga.core.outcomes import ErrorClass
from hooksaga.runtime import log_lines
from hooksaga.runtime.metrics import Metric
from hooksaga.worker.open_metrics import COUNTERS
from tests.database.seed import Seed

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "operations" / "observability.md").read_text(
    encoding="utf-8"
)


def rows_under(heading: str) -> dict[str, str]:
    """First cell to the rest, of the first table behind a heading, without its head."""
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = re.findall(r"^\| (.+?) \|(.*)\|$", section, re.MULTILINE)
    return dict(lines[1:])


def test_every_metric_is_there_by_both_its_names() -> None:
    names = {name.split("`")[1]: rest for name, rest in rows_under("Metrics").items() if "`" in name}
    assert set(names) == set(Metric)
    for metric, (name, _) in COUNTERS.items():
        assert f"`{name}_total`" in names[metric]
    assert re.findall(r"`([a-z0-9_]+)`", names[Metric.DELIVERY_FAILED])[2:] == list(ErrorClass)


async def test_every_view_is_there_with_its_columns(seed: Seed) -> None:
    found = await seed.rows(
        "SELECT c.relname::text AS view, array_agg(a.attname::text ORDER BY a.attnum) AS columns"
        " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0"
        " WHERE c.relkind = 'v' AND c.relnamespace = 'public'::regnamespace GROUP BY 1"
    )
    written = {name.strip("`"): re.findall(r"`(\w+)`", rest) for name, rest in rows_under("Views").items()}
    assert written == {row["view"]: row["columns"] for row in found}


def test_every_key_of_a_line_is_there() -> None:
    section = PAGE.split("## Log lines\n", 1)[1].split("\n## ", 1)[0]
    kinds = (log_lines.AttemptLine, log_lines.RoutedLine, log_lines.MoveLine, log_lines.ResetLine)
    kinds += (log_lines.RefusedLine,)
    keys = {field.name for kind in kinds for field in msgspec.structs.fields(kind)}
    assert [key for key in sorted(keys) if f"`{key}`" not in section] == []
