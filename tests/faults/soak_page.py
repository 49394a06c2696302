"""The page with the results of a soak test. No I/O."""

import textwrap
from collections.abc import Sequence

from tests.faults.soak_figures import Counts, Sample, Verdict

LOOKS = 12

_HEAD = """# Soak test: half an hour of load with failing receivers and a kill every minute

Written by `make soak ARGS="--page docs/soak.md"` if all checks pass; [testing](testing.md#the-soak) describes the run.
"""


def soak_page(run: str, counts: Counts, verdicts: Sequence[Verdict], samples: Sequence[Sample]) -> str:
    """Return the page. run: a sentence with date, duration, load and machine."""
    pace = counts.requests / samples[-1].seconds
    story = (
        f"{counts.accepted:,} events were accepted, and {counts.requests:,} requests were sent for {counts.arrived:,} "
        f"deliveries, on average {pace:,.0f} per second. A process was killed {counts.kills} times. Callers saw "
        f"{counts.hang_ups:,} broken connections and {counts.turned_away:,} responses with 503, and repeated their "
        "calls with the same keys."
    )
    held = [f"| {one.name} | {one.figures} |" for one in verdicts]
    looks = [*samples[: -1 : max(1, len(samples) // LOOKS)], samples[-1]]
    return "\n".join(
        [
            _HEAD,
            textwrap.fill(run, 120),
            "",
            textwrap.fill(story, 120),
            "",
            "| check | result |",
            "|---|---|",
            *held,
            "",
            "| after | memory | connections | events | open deliveries | tables | live rows | dead rows |",
            "|---|---|---|---|---|---|---|---|",
            *map(_row, looks),
            "",
        ]
    )


def _row(look: Sample) -> str:
    cells = (
        f"{look.seconds:.0f} s",
        f"{look.rss_mib:.0f} MiB",
        look.connections,
        f"{look.events:,}",
        f"{look.open_sagas:,}",
        f"{look.table_mib:,.0f} MiB",
        f"{look.live_rows:,}",
        f"{look.dead_rows:,}",
    )
    return f"| {' | '.join(map(str, cells))} |"
