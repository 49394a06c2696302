"""Requeue dead letters: always as a new saga; the old one never changes."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from hooksaga.adapters.database import Connection, fetch_one, fetch_rows, fetch_values, refusals
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import NotFound, RefusedRow, RowRefused
from hooksaga.core.sent_again import cannot_send_again
from hooksaga.operations.resend import SentAgain
from hooksaga.stages.batches import OnRefusal, run_isolating

MAX_MATCHED = 1000


@dataclass(frozen=True, slots=True)
class Requeued(SentAgain):
    """Result of one requeue."""

    dead_letter_id: int


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """Every field that is set must match. failed_after is inclusive, failed_before is not.

    requeued and standing are for lists only: a requeue takes those that stand. A dead letter stands that was not
    requeued, canceled or discarded, and could be sent again: its payload and its subscription are not deleted.
    """

    tenant_id: str | None = None
    subscription_id: int | None = None
    event_type: str | None = None
    error_code: str | None = None
    failed_after: datetime | None = None
    failed_before: datetime | None = None
    requeued: bool | None = None
    standing: bool = False


@dataclass(frozen=True, slots=True)
class RequeuedMatches:
    """Result of a requeue by filter: matched = requeued + skipped, except in a dry run."""

    matched: int
    requeued: list[Requeued]
    skipped: int
    dry_run: bool


@dataclass(frozen=True, slots=True)
class IdRange:
    """Ids above the first and below the second; None means no limit."""

    after_id: int | None
    before_id: int | None


async def requeue_dead_letters(connection: Connection, dead_letter_ids: Sequence[int]) -> list[Requeued]:
    """Start a new saga for each dead letter, once: a repeat returns the same sagas. Unknown ids are skipped."""
    return await fetch_rows(
        connection,
        load_queries("requeue")["requeue_dead_letters"],
        {"dead_letter_ids": list(dead_letter_ids)},
        Requeued,
    )


async def requeue_chosen(
    connection: Connection, dead_letter_ids: Sequence[int], *, tenant_id: str | None
) -> list[Requeued]:
    """Requeue those of the dead letters that the tenant may see, as `requeue_dead_letters` does."""
    params = {"dead_letter_ids": list(dead_letter_ids), "tenant_id": tenant_id}
    query = load_queries("requeue")["dead_letters_of_tenant"]
    ids = await fetch_values(connection, query, params)
    return await requeue_dead_letters(connection, ids) if ids else []


async def requeue_one(connection: Connection, dead_letter_id: int) -> Requeued:
    """Requeue one dead letter.

    Raises NotFound `dead_letter_not_found`, or Conflict `subscription_inactive`, `payload_removed` or `event_erased`.
    """
    answers = await requeue_dead_letters(connection, [dead_letter_id])
    if not answers:
        raise NotFound("dead_letter_not_found", f"there is no dead letter {dead_letter_id}")
    if answers[0].saga_id is None:
        raise cannot_send_again(answers[0].reason)
    return answers[0]


async def requeue_matching(
    connection: Connection,
    wanted: DeadLetterFilter,
    *,
    limit: int = MAX_MATCHED,
    dry_run: bool = False,
    on_refusal: OnRefusal = lambda _row: None,
) -> RequeuedMatches:
    """Requeue the oldest dead letters that match and were not requeued before, until limit new sagas are made.

    A dead letter whose subscription is inactive is skipped and does not block later ones. The same holds for one that
    the database rejects, which is also reported to on_refusal.
    """

    async def requeue_some(ids: Sequence[int]) -> list[Requeued | None]:
        async with refusals():
            return [*await requeue_dead_letters(connection, ids)]

    def refused(dead_letter_id: int, error: RowRefused) -> None:
        on_refusal(RefusedRow(reason=str(error), dead_letter_id=dead_letter_id))

    matched, requeued, between = 0, list[Requeued](), await ids_of_time(connection, wanted)
    while len(requeued) < limit:
        ids = await _match(connection, wanted, between, limit - len(requeued))
        if not ids:
            break
        matched, between = matched + len(ids), replace(between, after_id=ids[-1])
        if dry_run:
            break
        answers = await run_isolating(requeue_some, ids, refused)
        requeued += [answer for answer in answers if answer is not None and answer.created]
    return RequeuedMatches(matched, requeued, 0 if dry_run else matched - len(requeued), dry_run)


async def ids_of_time(connection: Connection, wanted: DeadLetterFilter) -> IdRange:
    """Return the id range that contains all dead letters of the filter's times."""
    if wanted.failed_after is None and wanted.failed_before is None:
        return IdRange(None, None)
    params = {"failed_after": wanted.failed_after, "failed_before": wanted.failed_before}
    return await fetch_one(connection, load_queries("requeue")["ids_of_time"], params, IdRange)


async def _match(connection: Connection, wanted: DeadLetterFilter, between: IdRange, limit: int) -> list[int]:
    params = {**asdict(wanted), **asdict(between), "limit": limit}
    return await fetch_values(connection, load_queries("requeue")["match_dead_letters"], params)
