"""Rows of the table of docs/performance.md, from the JSON of the measurements."""

import statistics
from typing import Any

COLUMNS = ("what", "figure", "beside it, in the same run", "floor")

Row = tuple[str, str, str, str]


def _of(values: list[float], digits: int = 0) -> str:
    """The median, with the lowest and the highest where there are several."""
    middle = f"{statistics.median(values):,.{digits}f}"
    return (
        middle if len(values) == 1 else f"{middle} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"
    )


def throughput(results: list[Any]) -> list[Row]:
    rates = [one["deliveries_per_second"] for one in results]
    return [("throughput, 20,000 events at once", f"{_of(rates)} deliveries/s", "see bench/compare.py", "")]


def latency(results: list[Any]) -> list[Row]:
    ranks = {rank: _of([one["latency_ms"][rank] for one in results], 1) for rank in ("p50", "p95")}
    accept = _of([one["accept_ms"]["p95"] for one in results], 1)
    return [
        (
            "latency at 200 events/s, 202 to receiver",
            f"p50 {ranks['p50']} ms, p95 {ranks['p95']} ms",
            f"POST to 202: p95 {accept} ms",
            "p50 15 ms, p95 40 ms",
        )
    ]


FLOORS = {"single": "1,500/s; p95 10 ms at half", "batch": "20,000/s; p95 10 ms at half"}


def ingest(results: list[Any]) -> list[Row]:
    rows: list[Row] = []
    for kind, floor in FLOORS.items():
        pairs = [[run for run in result if run["kind"] == kind] for result in results]
        full, half = ([pair[place] for pair in pairs] for place in (0, 1))
        what = "one by one" if kind == "single" else f"in batches of {full[0]['batch']}"
        client = statistics.median(run["cpu"]["client"] for run in full) * 100
        rows.append(
            (
                f"ingest {what}",
                f"{_of([run['events_per_second'] for run in full])} events/s; p95 {_p95(half)} ms at half of that",
                f"p95 {_p95(full)} ms at full rate; client {client:.0f} % of a core",
                floor,
            )
        )
    return rows


def _p95(runs: list[Any]) -> str:
    return _of([run["request_ms"]["p95"] for run in runs], 1)


def delivering(results: list[Any]) -> list[Row]:
    return [
        (f"{what}, delivering as well", figure, beside, "") for what, figure, beside, _ in ingest(results)
    ]


def fan_out(results: list[Any]) -> list[Row]:
    (one,) = results
    figure = f"{one['seconds']:.1f} s, {one['deliveries_per_second']:,.0f} deliveries/s"
    alone = f"others' p95 to 202 {one['accept_p95_ms']:,.1f} ms, {one['accept_times']} times that alone"
    arrivals = f"{one['latency_times']} times that alone"
    return [
        (f"fan-out of one event to {one['subscriptions']:,}", figure, alone, "1.5 times"),
        ("and others' p95 from 202 to receiver", f"{one['latency_p95_ms']:,.1f} ms", arrivals, ""),
    ]


def noisy(results: list[Any]) -> list[Row]:
    (one,) = results
    what = f"one of 20 a black hole, {one['rate']:,.0f} events/s: p95 of the 19"
    beside = f"{one['quiet_p95_ms']:,.1f} ms without: {one['times']} times"
    return [(what, f"{one['noisy_p95_ms']:,.1f} ms; {one['lost']} lost", beside, "1.5 times; 0")]


def closed(results: list[Any]) -> list[Row]:
    (one,) = results
    what = f"throughput beside {one['subscriptions']:,} paused or broken subscriptions with backlogs"
    beside = f"{_of(one['without'])} without them: {one['share']} times"
    return [(what, f"{_of(one['beside'])} deliveries/s", beside, "0.9 times")]


def outage(results: list[Any]) -> list[Row]:
    (one,) = results
    what = f"an endpoint down for an hour, {one['events_while_down']:,} events: attempts meanwhile"
    figure = f"{one['attempts']:,}; {one['dead_letters']} dead letters; {one['not_delivered']} not delivered"
    share = (
        f"{one['share']:.2%} of all that these events may have; {one['out_of_order']} out of order afterwards"
    )
    return [(what, figure, share, "1 %; 0; 0")]


def depth(results: list[Any]) -> list[Row]:
    (one,) = results
    slowest = max(one["queries"], key=lambda query: query["full_ms"])
    depth = f"{one['finished']:,} jobs and {one['waiting']:,} waiting sagas"
    return [
        (
            f"throughput beside {depth}",
            f"{_of(one['full_rates'])} deliveries/s",
            f"{_of(one['empty_rates'])} on the empty database: {one['share']} times",
            "0.85 times",
        ),
        (
            "slowest claim or due query there",
            f"{slowest['full_ms']:.1f} ms ({slowest['query'].partition(': ')[2]})",
            f"{slowest['empty_ms']:.1f} ms",
            "5 ms",
        ),
    ]


def memory(results: list[Any]) -> list[Row]:
    (one,) = results
    ends = f"{one['first_mb']:.0f} MB after the first round, {one['last_mb']:.0f} MB at the end"
    growth = f"{ends}; {one['mb_per_100_000']:+.1f} MB per 100,000"
    return [
        (
            f"memory over {one['deliveries']:,} deliveries",
            f"peak {one['peak_mb']:.0f} MB",
            growth,
            "250 MB, flat",
        )
    ]
