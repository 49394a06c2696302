"""Isolation of poison rows: a rejected row fails only itself, not its batch."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from hooksaga.adapters.database import Connection, refusals
from hooksaga.core.errors import RefusedRow, RowRefused

Item = TypeVar("Item")
Answer = TypeVar("Answer")


async def run_isolating(
    run: Callable[[Sequence[Item]], Awaitable[list[Answer]]],
    items: Sequence[Item],
    on_refusal: Callable[[Item, RowRefused], Answer],
) -> list[Answer]:
    """Run `run` over the items in batches and return its results in order; `run` may return fewer than it is given.

    When the database rejects a batch, each half is tried separately, down to the single failing item, whose result
    is that of `on_refusal`. `run` must leave no changes when it raises RowRefused.
    """
    try:
        return await run(items)
    except RowRefused as refused:
        if len(items) == 1:
            return [on_refusal(items[0], refused)]
    middle = len(items) // 2
    first = await run_isolating(run, items[:middle], on_refusal)
    return first + await run_isolating(run, items[middle:], on_refusal)


OnRefusal = Callable[[RefusedRow], None]


async def pass_refused(
    run: Callable[[Sequence[int] | None], Awaitable[list[Answer]]],
    look: Callable[[], Awaitable[Mapping[int, RefusedRow]]],
    on_refusal: OnRefusal,
) -> list[Answer]:
    """Return the results of `run(None)`, a statement that finds its own rows, or of `run(ids)` over the rows of `look`.

    When the database rejects that statement, the rows that `look` finds are tried by halves. Each rejected row is
    reported to `on_refusal` and stays unchanged.
    """

    async def attempt(ids: Sequence[int] | None) -> list[Answer]:
        async with refusals():
            return await run(ids)

    async def attempt_some(ids: Sequence[int]) -> list[Answer | None]:
        return [*await attempt(ids)]

    try:
        return await attempt(None)
    except RowRefused as refused:
        rows = await look()
        if not rows:
            raise refused from None

    def tell(row_id: int, error: RowRefused) -> None:
        on_refusal(replace(rows[row_id], reason=str(error)))

    answers = await run_isolating(attempt_some, list(rows), tell)
    return [answer for answer in answers if answer is not None]


async def refused_at_savepoints(
    connection: Connection,
    run: Callable[[Sequence[Item]], Awaitable[list[Answer]]],
    items: Sequence[Item],
    on_refusal: Callable[[Item, RowRefused], None],
) -> list[Answer]:
    """Return the results of `run` inside the open transaction, without the items that the database rejects."""

    async def attempt(part: Sequence[Item]) -> list[Answer | None]:
        async with refusals(), connection.transaction():
            return [*await run(part)]

    answers = await run_isolating(attempt, items, on_refusal)
    return [answer for answer in answers if answer is not None]


async def refused_alone(
    run: Callable[[dict[int, Callable[[], RefusedRow]], Sequence[int]], Awaitable[list[Answer]]],
    named: Sequence[int],
) -> list[Answer]:
    """Return the results of `run(seen, named)`, a transaction over rows whose reports it first adds to `seen`, by id.

    When the database rejects it, each row is tried by its id in its own transaction. RowRefused is raised after that,
    with the results of the other rows in `done` and all rejected rows in `rows`: a rejected row does not block the
    rest of its batch, and each rejection is reported.
    """
    seen: dict[int, Callable[[], RefusedRow]] = {}
    try:
        return await run(seen, named)
    except RowRefused as refused:
        if len(seen) < 2:
            refused.rows = [replace(report(), reason=str(refused)) for report in seen.values()]
            raise
    answers, rows, refusal = list[Answer](), list[RefusedRow](), None
    for row_id, report in seen.items():
        try:
            answers += await run({}, [row_id])
        except RowRefused as error:
            rows.append(replace(report(), reason=str(error)))
            refusal = error
    if refusal is not None:
        refusal.done, refusal.rows = answers, rows
        raise refusal
    return answers
