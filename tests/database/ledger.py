"""Model of the expected state, from the results that the roles got when they committed.

Everything here is plain Python. Each method is called after a transaction; it rejects a result that contradicts
earlier ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hooksaga.core.errors import Conflict, HooksagaError, NotFound
from hooksaga.core.event_input import EventDraft
from hooksaga.core.saga import JobStatus, SagaStatus
from hooksaga.operations.bulk_steps import BulkStep
from hooksaga.operations.requeue import Requeued
from hooksaga.stages.accept_events import AcceptedEvent, Answer
from hooksaga.stages.clean_leases import LeaseReset
from hooksaga.stages.job_rows import AttemptResult, ClaimedJob
from hooksaga.stages.saga_rows import SagaMoved


def content(draft: EventDraft) -> tuple[str, str, str]:
    """The part of a draft that decides whether two drafts with one key are the same event."""
    return draft.event_type, draft.payload, draft.tenant_id


@dataclass
class Ledger:
    """Ids to what is known of them. A claim is a worker's name and its claim_count."""

    max_lost_leases: int
    events: dict[int, EventDraft] = field(default_factory=dict[int, EventDraft])
    keys: dict[str, int] = field(default_factory=dict[str, int])
    claims: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    held: dict[int, tuple[str, int]] = field(default_factory=dict[int, tuple[str, int]])
    expired: set[int] = field(default_factory=set[int])
    ended: dict[int, str | None] = field(default_factory=dict[int, str | None])
    applied: set[int] = field(default_factory=set[int])
    limits: dict[int, int] = field(default_factory=dict[int, int])
    rooms: dict[int, int] = field(default_factory=dict[int, int])
    requeued: dict[int, int] = field(default_factory=dict[int, int])
    made: set[int] = field(default_factory=set[int])
    canceled: set[int] = field(default_factory=set[int])
    in_bulk: set[int] = field(default_factory=set[int])
    dropped: int = 0

    def accepted(self, drafts: Sequence[EventDraft], answers: Sequence[Answer]) -> None:
        """One event per key, for ever, and a repeat is told so."""
        for draft, answer in zip(drafts, answers, strict=True):
            known = self.keys.get(draft.external_id or "")
            if isinstance(answer, Conflict):
                assert known is not None
                assert content(self.events[known]) != content(draft)
                continue
            assert isinstance(answer, AcceptedEvent), answer
            assert answer.duplicate == (known is not None), (draft, answer)
            if known is None:
                assert answer.id not in self.events
                self.events[answer.id] = draft
            else:
                assert (answer.id, content(self.events[known])) == (known, content(draft))
            if draft.external_id:
                self.keys[draft.external_id] = answer.id

    def claimed(self, worker: str, jobs: Sequence[ClaimedJob]) -> None:
        """Check that no other worker holds the job, and that this claim is new."""
        for job in jobs:
            assert job.id not in self.held, f"{worker} claimed job {job.id} of {self.held[job.id]}"
            assert job.id not in self.ended
            assert (job.id, job.claim_count) not in self.claims
            assert job.attempt_number <= self.limits[job.subscription_id]
            self.claims.add((job.id, job.claim_count))
            self.held[job.id] = (worker, job.claim_count)
            self.expired.discard(job.id)

    def reported(
        self, worker: str, results: Sequence[AttemptResult], locked: set[int], written: set[int]
    ) -> None:
        """A result counts if, and only if, the claim is still held; where the row was locked it may come again."""
        results = [result for result in results if result.job.id not in locked]
        counting = {
            result.job.id: result
            for result in results
            if self.held.get(result.job.id) == (worker, result.job.claim_count)
        }
        assert written == set(counting), (worker, written, self.held)
        self.dropped += len(results) - len(counting)
        for job_id, result in counting.items():
            del self.held[job_id]
            self.ended[job_id] = result.outcome.error_code

    def handed_back(self, worker: str, jobs: Sequence[ClaimedJob]) -> None:
        for job in jobs:
            if self.held.get(job.id) == (worker, job.claim_count):
                del self.held[job.id]

    def cleaned(self, resets: Sequence[LeaseReset]) -> None:
        """Only leases that were over are ended, and only a job that has lost as many leases as it may is given up."""
        for reset in resets:
            assert self.held.pop(reset.id) == (reset.worker_id, reset.claim_count)
            assert reset.id in self.expired, f"the lease of job {reset.id} was not over"
            self.expired.discard(reset.id)
            gives_up = reset.lost_leases >= self.max_lost_leases
            assert (reset.status == JobStatus.FAILED) == gives_up, reset
            if gives_up:
                self.ended[reset.id] = "lease_expired"

    def applied_results(self, moves: Sequence[SagaMoved]) -> None:
        """Each result is taken once, and moves its saga as it says."""
        for move in moves:
            assert move.job_id is not None
            assert move.job_id not in self.applied, f"the result of job {move.job_id} was taken twice"
            error = self.ended[move.job_id]
            assert (move.status == SagaStatus.COMPLETED) == (error is None), (move, error)
            assert move.attempt_count <= self.limits[move.subscription_id]
            self.applied.add(move.job_id)

    def requeued_one(self, answers: Sequence[Requeued] | HooksagaError) -> None:
        """One new saga for each dead letter, for ever. Of two who ask at once the one who made it may be told last."""
        assert not isinstance(answers, HooksagaError)
        for answer in answers:
            if answer.saga_id is not None:
                self.requeued.setdefault(answer.dead_letter_id, answer.saga_id)
            assert answer.saga_id == self.requeued.get(answer.dead_letter_id), answer
            if answer.created:
                assert answer.saga_id is not None
                assert answer.saga_id not in self.made | self.in_bulk, answer
                self.made.add(answer.saga_id)

    def stepped(self, step: BulkStep) -> None:
        """A bulk requeue has started these sagas, which nobody had started before."""
        assert self.in_bulk.isdisjoint(step.saga_ids)
        self.in_bulk |= set(step.saga_ids)

    def canceled_one(self, answer: SagaMoved | HooksagaError) -> None:
        """Refused for what does not wait; final otherwise."""
        if isinstance(answer, HooksagaError):
            assert isinstance(answer, Conflict | NotFound), answer
        else:
            assert (answer.status, answer.final_error_code) == (SagaStatus.DEAD_LETTERED, "canceled")
            self.canceled.add(answer.saga_id)

    def assert_room_was_kept(self, flows: Sequence[Mapping[str, Any]]) -> None:
        """No more is in progress than the greatest limit that a subscription ever had."""
        for flow in flows:
            assert flow["in_flight"] <= self.rooms[flow["subscription_id"]], flow

    def assert_told_by(self, sagas: Sequence[Mapping[str, Any]], jobs: Sequence[Mapping[str, Any]]) -> None:
        """The tables tell what was committed, and nothing else."""
        for job in jobs:
            assert (job["status"] == "Leased") == (job["id"] in self.held), job
            if job["id"] in self.held:
                assert (job["worker_id"], job["claim_count"]) == self.held[job["id"]]
            has_ended = job["status"] in ("Completed", "Failed")
            assert has_ended == (job["id"] in self.ended), job
            if has_ended:
                assert job["error_code"] == self.ended[job["id"]]
                assert job["is_applied"] == (job["id"] in self.applied)
        for saga in sagas:
            assert saga["attempt_count"] <= self.limits[saga["subscription_id"]]
            if saga["id"] in self.canceled:
                assert (saga["status"], saga["final_error_code"]) == ("DeadLettered", "canceled")
            if saga["status"] == "Completed":
                assert self.ended[saga["last_job"]] is None, f"no claim of saga {saga['id']} reported success"
