"""The figures of a soak, for people: no I/O."""

import textwrap
from collections.abc import Sequence

from tests.faults.soak_figures import Counts, Sample, Verdict

LOOKS = 12

_HEAD = """# A soak: half an hour of load, failing receivers, and a kill every minute

Written by `make soak ARGS="--page docs/soak.md"`, and only when all of it holds; [what it does](testing.md#the-soak).
"""


def soak_page(run: str, counts: Counts, verdicts: Sequence[Verdict], samples: Sequence[Sample]) -> str:
    """run: when, how long, how much and on what, in words."""
    pace = counts.requests / samples[-1].seconds
    story = (
        f"{counts.accepted:,} events were accepted, {counts.requests:,} requests sent for {counts.arrived:,} "
        f"deliveries, {pace:,.0f} a second until the last had ended; a process was killed {counts.kills} times. "
        f"Callers saw {counts.hang_ups:,} broken connections and {counts.turned_away:,} answers of 503, and repeated "
        "with the same key."
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
            "| what holds | measured |",
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
