"""The simulation of SQS mode on small cases: copies, admission, and the same figures for the same seed."""

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.flow_simulation import TRAFFIC, simulate, table, with_copies
from bench.simulated_pipeline import Pipeline, Traffic
from bench.simulated_sqs import Loop, Process, Source
from hooksaga.aws.deployment import ENVIRONMENTS
from hooksaga.core.flow import FIRST_LIMIT
from hooksaga.cost.sources import read_inputs
from hooksaga.cost.work import POLLERS

DEV = ENVIRONMENTS["dev"]
SMALL = Traffic(rate=10, subscriptions=10, fan_out=1, seconds=60, share_of_one=0.2)


def test_a_source_gives_each_free_copy_a_batch_and_the_rest_waits() -> None:
    loop, ended = Loop(), list[tuple[float, list[Any]]]()

    def handler(batch: list[Any]) -> Process:
        yield 1.0
        ended.append((loop.now, batch))

    source = Source(loop, handler, copies=2, batch=2, receive_seconds=0.5)
    source.put([1, 2, 3, 4, 5])
    source.put_later(0.2, [6])
    loop.run(10)
    assert ended == [(1.5, [1, 2]), (1.5, [3, 4]), (3.0, [5, 6])]
    assert (source.messages, source.invocations, source.busy_seconds, source.deepest) == (6, 3, 3.0, 2)


def test_the_others_notice_nothing_of_one_that_is_silent() -> None:
    good, silent = (
        simulate(DEV, replace(SMALL, silent_from=silent_from), read_inputs()) for silent_from in (1000, 0)
    )
    assert (good.is_silent, silent.is_silent) == (False, True)
    assert (good.delivered_share, silent.delivered_share) == (1, 1)
    assert (silent.latency_ms.p95 or 0) < 1.5 * (good.latency_ms.p95 or 0)
    assert good.timeouts == 0
    assert (
        FIRST_LIMIT <= silent.timeouts <= FIRST_LIMIT + 6
    )  # its room, and then the probes of the circuit breaker
    assert silent.dead_letters == 0
    assert "one silent" in table([good, silent])


def test_with_a_window_each_poller_gathers_a_batch() -> None:
    loop, ended = Loop(), list[tuple[float, list[Any]]]()

    def handler(batch: list[Any]) -> Process:
        yield 1.0
        ended.append((loop.now, batch))

    source = Source(loop, handler, copies=2, batch=2, receive_seconds=0.5, window_seconds=3)
    source.put(list(range(POLLERS)))
    source.put_later(1, [5])
    loop.run(20)
    assert ended[0] == (2.5, [0, 5]), "full"
    assert [batch for _, batch in ended[1:]] == [[1], [2], [3], [4]]
    assert ended[1][0] == 4.5, "the window is over"


def test_the_copies_of_prod_are_enough_for_its_traffic() -> None:
    prod = simulate(
        ENVIRONMENTS["prod"], replace(TRAFFIC["prod"], seconds=4, silent_from=1000), read_inputs()
    )
    assert prod.offered_per_second > 2500
    assert prod.delivered_share == 1
    assert (prod.latency_ms.p95 or math.inf) < 1000


def test_the_page_has_the_copies_of_the_settings() -> None:
    page = Path("docs/performance-lambda.md").read_text(encoding="utf-8")
    for name, receivers in itertools.product(("prod", "dev"), ("all answer", "one is silent")):
        env = ENVIRONMENTS[name]
        quick = env.delivery.concurrency - env.slow_concurrency
        assert f"| `{name}` | {receivers} | {quick} | {env.orchestrator.concurrency} |" in page
    prod, rate = ENVIRONMENTS["prod"], TRAFFIC["prod"]
    assert f"{rate.rate:,.0f} events a second, each for {rate.fan_out} of {rate.subscriptions}" in page
    assert f"`{prod.database.instance_class}`" in page


def test_with_few_copies_they_wait_for_the_silent_one() -> None:
    few = simulate(with_copies(DEV, 2, None), SMALL, read_inputs())
    assert few.quick_copies == 2
    assert few.latency_ms.p95 is None or few.latency_ms.p95 > 5000


def test_the_silent_one_waits_behind_its_circuit_breaker() -> None:
    pipeline = Pipeline(DEV, SMALL, read_inputs())
    pipeline.run()
    one = pipeline.one
    assert one.flow.breaker_opened_at is not None
    assert one.in_progress <= 1
    assert len(one.waiting) + one.in_progress == sum(saga.subscription is one for saga in pipeline.sagas)
    assert {saga.arrived_at for saga in pipeline.sagas if saga.subscription is one} == {None}


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_seed_gives_the_same_figures(seed: int) -> None:
    traffic = replace(SMALL, seconds=20, seed=seed)
    first, second = (simulate(DEV, traffic, read_inputs()) for _ in range(2))
    assert first == second
    assert first != simulate(DEV, replace(traffic, seed=seed + 10), read_inputs())
