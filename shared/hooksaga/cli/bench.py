"""`hooksaga bench`: throughput and latency of one machine."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hooksaga.cli.failures import CommandFailed, WrongUse
from hooksaga.cli.signals import interrupt_on_sigterm
from hooksaga.cli.terminal import AsJson, progress_bar, show_fields, show_json

if TYPE_CHECKING:
    from hooksaga.local.bench import BenchOptions, Report
    from hooksaga.local.bench_figures import BenchResult, Percentiles

ENVELOPE_BYTES = 100


def bench(
    events: Annotated[int, typer.Option(min=1, max=10_000_000, help="Number of events.")] = 10_000,
    payload_bytes: Annotated[int, typer.Option(min=2, help="Size of each payload.")] = 600,
    subscriptions: Annotated[int, typer.Option(min=1, max=1000, help="Subscriptions per event.")] = 1,
    url: Annotated[
        str | None,
        typer.Option(help="https:// URL of a receiver, instead of a local one.", show_default=False),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Post single events through the API at this rate per second.",
            show_default="all at once",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure deliveries per second and latency.

    It runs the same stages as `hooksaga up` on an empty database, which it deletes afterwards. The time is measured
    from the first accepted event to the last completed delivery, the latency from an event's acceptance to its
    arrival at the receiver. Without --rate all events are posted at once, so the latency includes the time in the
    queue. If the output is a pipe or a file, it is JSON, as with --json.
    """
    _check_size(payload_bytes)
    from hooksaga.local.bench import BenchOptions
    from hooksaga.worker import event_loop

    options = BenchOptions(events, payload_bytes, subscriptions, url, rate)
    interrupt_on_sigterm()
    result = event_loop.run(_measure(options))
    if as_json or not sys.stdout.isatty():
        from dataclasses import asdict

        show_json(asdict(result))
    else:
        show_fields(figures(result))
    if result.failed:
        raise CommandFailed(
            f"{result.failed} deliveries were dead-lettered: the receiver did not accept them"
        )


def _check_size(payload_bytes: int) -> None:
    from hooksaga.runtime.settings import read_settings

    if payload_bytes > read_settings().payload_max_bytes - ENVELOPE_BYTES:
        raise WrongUse("--payload-bytes exceeds HOOKSAGA_PAYLOAD_MAX_BYTES")


async def _measure(options: "BenchOptions") -> "BenchResult":
    from hooksaga.local.bench import BenchFailed, run_bench
    from hooksaga.runtime.settings import read_settings

    with progress_bar() as progress:
        try:
            return await run_bench(options, read_settings().data_dir, _reporter(progress))
        except BenchFailed as error:
            raise CommandFailed(str(error)) from error


def _reporter(progress: Any) -> "Report":
    task = progress.add_task("starting a database", total=None)

    def report(what: str, done: int, total: int) -> None:
        progress.update(task, description=what, completed=done, total=total)

    return report


def figures(result: "BenchResult") -> dict[str, object]:
    """Return the result as lines for people."""
    lines: dict[str, object] = {
        "deliveries per second": f"{result.deliveries_per_second:,.0f}",
        "deliveries": f"{result.deliveries:,} ({result.events:,} events of {result.payload_bytes} bytes)",
        "seconds": f"{result.seconds:,.2f}",
        "accepted to arrival": _milliseconds(result.latency_ms),
    }
    if result.accept_ms is not None:
        lines["POST to 202"] = _milliseconds(result.accept_ms)
    return lines | {"processes of hooksaga": result.processes}


def _milliseconds(of: "Percentiles") -> str:
    named = {"p50": of.p50, "p95": of.p95, "p99": of.p99}
    return ", ".join(
        f"{name} {'-' if value is None else f'{value:,.1f} ms'}" for name, value in named.items()
    )
