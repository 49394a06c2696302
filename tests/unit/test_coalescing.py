"""Callers at the same time share one batch, and each of them gets its own answer or the batch's error."""

import asyncio
from collections.abc import Sequence

from hooksaga.api.coalescing import Coalescer


class Doubler:
    """Doubles numbers, batch by batch, when its gate is open."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, items: Sequence[int]) -> list[int]:
        self.batches.append(list(items))
        await self.gate.wait()
        if min(items) < 0:
            raise ValueError("a number below zero")
        return [item * 2 for item in items]


async def until_gathered(coalescer: Coalescer[int, int], tasks: list["asyncio.Task[int]"]) -> None:
    """Let every task hand in its item."""
    while len(coalescer._waiting) < len(tasks):
        await asyncio.sleep(0)


def submit(coalescer: Coalescer[int, int], numbers: Sequence[int]) -> list["asyncio.Task[int]"]:
    return [asyncio.create_task(coalescer.submit(number)) for number in numbers]


async def test_a_caller_alone_waits_for_nobody() -> None:
    doubler = Doubler()
    assert await Coalescer(doubler).submit(4) == 8
    assert doubler.batches == [[4]]


async def test_callers_during_a_batch_go_together_in_order() -> None:
    doubler = Doubler()
    coalescer = Coalescer(doubler)
    doubler.gate.clear()
    first = asyncio.create_task(coalescer.submit(0))
    while not doubler.batches:
        await asyncio.sleep(0)
    rest = submit(coalescer, range(1, 100))
    await until_gathered(coalescer, rest)
    doubler.gate.set()
    assert await asyncio.gather(first, *rest) == [number * 2 for number in range(100)]
    assert doubler.batches == [[0], list(range(1, 100))]


async def test_a_batch_has_a_bound_and_nobody_is_left_behind() -> None:
    doubler = Doubler()
    answers = await asyncio.gather(*submit(Coalescer(doubler, max_batch=10), range(101)))
    assert answers == [number * 2 for number in range(101)]
    assert max(map(len, doubler.batches)) == 10


async def test_an_error_reaches_every_caller_of_its_batch_and_nobody_else() -> None:
    doubler = Doubler()
    coalescer = Coalescer(doubler, max_batch=5)
    outcomes = await asyncio.gather(*submit(coalescer, range(-5, 5)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ValueError] * 5 + [int] * 5
    assert await coalescer.submit(1) == 2


async def test_a_caller_that_gives_up_spoils_nothing_for_the_others() -> None:
    doubler = Doubler()
    coalescer = Coalescer(doubler)
    doubler.gate.clear()
    tasks = submit(coalescer, [1, 2, 3])
    while not doubler.batches:
        await asyncio.sleep(0)
    tasks[1].cancel()
    doubler.gate.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [int, asyncio.CancelledError, int]


async def test_too_few_answers_are_an_error_and_nobody_waits_for_ever() -> None:
    async def forgetful(items: Sequence[int]) -> list[int]:
        return list(items)[1:]

    callers = submit(Coalescer(forgetful), [1, 2])
    _, left_waiting = await asyncio.wait(callers, timeout=1)
    for caller in left_waiting:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    assert not left_waiting
