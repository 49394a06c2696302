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
