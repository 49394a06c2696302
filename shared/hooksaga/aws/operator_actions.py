"""Actions of the admin function for database maintenance: prune, audit, doctor. The response names the work that one
call had no time for; the caller requests it again."""

import asyncio
from typing import Annotated, Any, Literal, assert_never

from pydantic import AfterValidator, Field

from hooksaga.aws.function import SECONDS_FOR_ONE_BATCH, Function, Invocation
from hooksaga.core.ages import parse_age
from hooksaga.core.errors import DatabaseUnavailable, InvalidInput
from hooksaga.core.models import Moment, StrictModel, rfc3339
from hooksaga.core.retention import RetentionKind
from hooksaga.operations import doctor
from hooksaga.operations.audit import Finding, audit_one, invariants
from hooksaga.operations.prune import BATCH, Deleted, Place, Pruned, Pruning, prune, prune_batch
from hooksaga.operations.work_state import is_at_rest


def _is_age(text: str) -> str:
    parse_age(text)
    return text


class PrunePlace(StrictModel):
    at: Moment
    id: int = Field(ge=0, lt=2**63)


class Prune(StrictModel):
    """Delete rows of one kind that ended longer ago than older_than, such as 30d; without it by the settings, and
    nothing if they keep this kind for ever. `next` in the response: more left."""

    action: Literal["prune"]
    kind: RetentionKind = RetentionKind.DELIVERIES
    older_than: Annotated[str, AfterValidator(_is_age)] | None = None
    dry_run: bool = False
    batch: int = Field(default=BATCH, ge=1, le=100_000)
    after: PrunePlace | None = None


class Audit(StrictModel):
    """Check these invariants, or all. `unchecked` of the response lists those that there was no time for.

    `at_rest` states that no process is at work, so that waiting times are not judged.
    """

    action: Literal["audit"]
    invariants: list[str] | None = Field(default=None, min_length=1)


class Doctor(StrictModel):
    """Read the facts of the database for `hooksaga doctor`."""

    action: Literal["doctor"]


OperatorAction = Prune | Audit | Doctor


async def run_operator_action(
    function: Function, invocation: Invocation, action: OperatorAction
) -> dict[str, Any]:
    """Run an action and return its result. Raises InvalidInput."""
    match action:
        case Prune():
            return await _prune(function, invocation, action)
        case Audit():
            return await _audit(function, invocation, action.invariants or invariants())
        case Doctor():
            return await function.session.run(doctor.read_facts)
        case _:
            assert_never(action)


async def _prune(function: Function, invocation: Invocation, action: Prune) -> dict[str, Any]:
    age = function.settings.retention_policy.age_of(action.kind)
    if action.older_than is not None:
        age = parse_age(action.older_than)
    if age is None:
        return {**Deleted().counts(), "before": None, "dry_run": action.dry_run, "next": None}
    wanted = Pruning(age, action.dry_run, action.batch, action.kind)

    async def run_batch(after: Place | None) -> Pruned:
        return await function.session.run(prune_batch, wanted=wanted, after=after)

    after = Place(action.after.at, action.after.id) if action.after else None
    done = await prune(
        run_batch, after, may_go_on=lambda _: invocation.seconds_left() > SECONDS_FOR_ONE_BATCH
    )
    if done.is_blocked:
        raise DatabaseUnavailable("another batch of retention is at work: repeat the request")
    return {
        **done.counts(),
        "before": rfc3339(done.before),
        "dry_run": action.dry_run,
        "next": {"at": rfc3339(done.place.at), "id": done.place.id} if done.place else None,
    }


async def _audit(function: Function, invocation: Invocation, wanted: list[str]) -> dict[str, Any]:
    if unknown := [name for name in wanted if name not in invariants()]:
        raise InvalidInput(
            "invalid_field", f"invariants: unknown invariant {unknown[0]}", field="invariants", status=422
        )
    at_rest = await function.session.run(is_at_rest)
    findings = list[Finding]()
    try:
        async with asyncio.timeout(invocation.seconds_left()):
            for name in wanted:
                findings.append(await function.session.run(audit_one, invariant=name))
    except TimeoutError:
        pass  # the response lists the remaining ones
    return {
        "ok": all(not finding.rows for finding in findings),
        "at_rest": at_rest,
        "invariants": [finding.content() for finding in findings],
        "unchecked": wanted[len(findings) :],
    }
