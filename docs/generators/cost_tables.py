"""Tables of docs/cost.md and docs/scale.md that no command prints, from the numbers of `hooksaga cost`."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hooksaga.aws.deployment import ENVIRONMENTS, Environment
from hooksaga.aws.latency import Latency
from hooksaga.cost.bill import bill_of
from hooksaga.cost.capacity import (
    STRIPED_GB,
    connections_of,
    database_rate,
    with_database,
)
from hooksaga.cost.estimate import estimate_of
from hooksaga.cost.sources import read_inputs, read_prices
from hooksaga.cost.table import aligned
from hooksaga.cost.work import HOURS, Load, work_of

PEERS = Path(__file__).with_name("peer_prices.toml")
MONTHS = (1e6, 1e7, 1e8)
FAN_OUTS = (1, 3, 10)


@dataclass(frozen=True, slots=True)
class Peer:
    """US dollars: of a month, of a million events beyond those included, and of a million deliveries."""

    name: str
    read: str
    source: str
    words: str
    month: float = 0
    included_events: float = 0
    million_events: float = 0
    million_deliveries: float = 0

    def dollars(self, events: float, deliveries: float) -> float:
        share = max(0.0, 1 - self.included_events / events)
        metered = events * self.million_events + deliveries * self.million_deliveries
        return self.month + metered / 1e6 * share


def peers() -> list[Peer]:
    return [Peer(**one) for one in tomllib.loads(PEERS.read_text(encoding="utf-8"))["peer"]]


def peers_table() -> list[str]:
    head = ["US dollars a month", *(f"{events / 1e6:g} M events" for events in MONTHS), "prices read"]
    ours = [
        [
            f"hooksaga, `{name}`, latency {level}",
            *(_ours(name, level, events) for events in MONTHS),
            f"{read_prices().dated}",
        ]
        for name, level in (("dev", Latency.LOW), ("dev", Latency.ECONOMY), ("prod", Latency.LOW))
    ]
    others = [
        [f"[{peer.name}]({peer.source})", *(f"{peer.dollars(one, one):,.0f}" for one in MONTHS), peer.read]
        for peer in peers()
    ]
    return aligned([head, *ours, *others])


def _ours(name: str, level: Latency, events: float) -> str:
    env = ENVIRONMENTS[name].with_latency(level)
    return f"{estimate_of(Load(events), env, read_prices(), read_inputs()).bill.total:,.0f}"


def levers_table() -> list[str]:
    """What each lever changes at ten million events a month in `dev`, from how it was before them all."""
    low = ENVIRONMENTS["dev"]
    large = replace(low, delivery=replace(low.delivery, memory_mb=1024))
    steps = [
        ("without any", replace(large, tracing=True), 1),
        ("no X-Ray traces (`tracing`)", large, 1),
        ("`delivery` with 512 MB instead of 1,024", low, 1),
        ("`latency`: balanced", low.with_latency(Latency.BALANCED), 1),
        ("`latency`: economy", low.with_latency(Latency.ECONOMY), 1),
        ("and events posted in batches of 100", low.with_latency(Latency.ECONOMY), 100),
    ]
    first = _per_million(steps[0][1], 1)
    rows = [
        [title, f"{cost:.2f}", f"{1 - cost / first:.0%}"]
        for title, env, batch in steps
        for cost in [_per_million(env, batch)]
    ]
    return aligned([["each lever on top of those above", "dollars per million", "less than without"], *rows])


def _per_million(env: Environment, events_per_request: int) -> float:
    """Without what a batch saves in the function behind the API."""
    load = Load(1e7)
    bill = bill_of(load, env, read_prices(), read_inputs())
    return (bill.total - bill.api * (1 - 1 / events_per_request)) / load.deliveries * 1e6


def levels_table() -> list[str]:
    load, rows = Load(1e7), list[list[str]]()
    for level in Latency:
        env = ENVIRONMENTS["dev"].with_latency(level)
        work = work_of(load, env, read_inputs())
        messages = sum(part.invocations for part in work.steps) / load.events
        window = env.batching("routing").window_seconds
        total = bill_of(load, env, read_prices(), read_inputs()).total
        rows.append(
            [
                level.value,
                f"{window} s",
                f"{env.batching('routing').size}, {env.batching('delivery').size}",
                f"{messages:.2f}",
                f"{work.sqs_requests / load.events:.2f}",
                f"{total / load.deliveries * 1e6:.2f}",
            ]
        )
    head = ["latency", "window", "batch", "invocations", "SQS requests", "dollars per million"]
    return aligned([head, *rows])


def databases_table() -> list[str]:
    """Events a second at the peak that each instance class carries, with the settings of `prod`, without its copies."""
    env, prices, inputs = ENVIRONMENTS["prod"], read_prices(), read_inputs()
    head = [
        "instance class",
        "dollars a month, two zones",
        "connections",
        *(f"events/s, fan-out {one}" for one in FAN_OUTS),
        "first limit",
    ]
    rows: list[list[str]] = []
    for name, instance in prices.rds_postgresql.instances.items():
        sized = with_database(env, name, STRIPED_GB)
        carried = [database_rate(Load(1, one), sized, prices, inputs) for one in FAN_OUTS]
        if not carried[0].events_per_second:  # too small for the connections of `prod`
            continue
        rows.append(
            [
                name,
                f"{2 * instance.hour * HOURS:,.0f}",
                f"{connections_of(instance.memory_gib):,}",
                *(f"{one.events_per_second:,.0f}" for one in carried),
                carried[1].first.name,
            ]
        )
    return aligned([head, *rows])


def sources_list() -> list[str]:
    return [f"- {peer.name}, read {peer.read}: {peer.words}." for peer in peers()]


TABLES: dict[str, Callable[[], list[str]]] = {
    "peers": peers_table,
    "sources": sources_list,
    "levers": levers_table,
    "levels": levels_table,
    "databases": databases_table,
}
