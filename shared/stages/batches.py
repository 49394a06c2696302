"""One poisoned row never stops its neighbours."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from shared.core.errors import RowRefused

Item = TypeVar("Item")
Answer = TypeVar("Answer")


async def run_isolating(
    run: Callable[[Sequence[Item]], Awaitable[list[Answer]]],
    items: Sequence[Item],
    on_refusal: Callable[[Item, RowRefused], Answer],
) -> list[Answer]:
    """The answers of `run` over the items, batch by batch in order; `run` may answer fewer than it is given.

    Where the database refuses a batch, its halves are tried apart, down to the one item at fault, which gets
    the answer of `on_refusal`. `run` must leave nothing behind when it raises RowRefused.
    """
    try:
        return await run(items)
    except RowRefused as refused:
        if len(items) == 1:
            return [on_refusal(items[0], refused)]
    middle = len(items) // 2
    first = await run_isolating(run, items[:middle], on_refusal)
    return first + await run_isolating(run, items[middle:], on_refusal)


async def refused_alone(
    run: Callable[[list[int], Sequence[int] | None], Awaitable[list[Answer]]], named: Sequence[int] | None
) -> list[Answer]:
    """The answers of `run(seen, named)`, which is a transaction over rows whose ids it puts into `seen` first.

    Where the database refuses it, each row is tried by its id in a transaction of its own, and only then the refusal
    is raised, with the answers of the others in `done`: a row that cannot be moved holds up nobody, and does not go
    unnoticed.
    """
    seen: list[int] = []
    try:
        return await run(seen, named)
    except RowRefused:
        if len(seen) < 2:
            raise
    answers, refusal = list[Answer](), None
    for row_id in seen:
        try:
            answers += await run([], [row_id])
        except RowRefused as error:
            refusal = error
    if refusal is not None:
        refusal.done = answers
        raise refusal
    return answers
