"""A system in which nothing is wrong: rounds of all stages, one after the other, until nothing is left to do."""

from functools import partial

from hooksaga.adapters.database import Role
from hooksaga.core.event_input import EventDraft
from hooksaga.stages import clean_leases, deliver
from hooksaga.stages.accept_events import accept_events
from hooksaga.stages.job_rows import AttemptResult, ClaimedJob
from hooksaga.stages.route_events import route_events
from tests.database import orchestrate
from tests.database.crew import LEASE_SECONDS, MAX_LOST_LEASES, POLICY, Crew, nothing
from tests.database.interleaving import Actor, Pace
from tests.database.seed import outcome

ROUNDS = 120
"""More than the longest life takes: three attempts, each with three claims, of a saga and its requeues, one at a time
where a subscription is ordered."""


def result_of(job: ClaimedJob, *, fails: bool) -> AttemptResult:
    """Return the result that a worker reports for a job."""
    if not job.deliverable:
        return AttemptResult(job, outcome("subscription_inactive"))
    return AttemptResult(job, outcome("http_503" if fails else None))


class HealthyRounds:
    """Rounds of one crew."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew

    async def open_work(self) -> int:
        return await self.crew.seed.value(
            "SELECT (SELECT count(*) FROM routing_outbox) + (SELECT count(*) FROM webhook_delivery_sagas"
            " WHERE status NOT IN ('Completed', 'DeadLettered'))"
        )

    async def until_all_has_ended(self) -> None:
        """Whatever is open, however it came to be so."""
        for _ in range(ROUNDS):
            if not await self.open_work():
                break
            await self.everybody_works()
        assert await self.open_work() == 0

    async def everybody_works(self, *, fails: bool = False) -> None:
        """One round of a system in which nothing is wrong, but for the receivers if one says so."""
        crew, ledger = self.crew, self.crew.ledger
        cleaner, worker = crew.actors[Role.LEASE_CLEANER][0], crew.actors[Role.DELIVERY][0]
        orchestrator = crew.actors[Role.ORCHESTRATOR][0]
        await crew.end_leases()
        if not fails:
            await crew.end_waits()
            await crew.resume_all()
            await crew.open_rooms()
        clean = partial(clean_leases.clean_leases, max_lost_leases=MAX_LOST_LEASES)
        await crew.work(cleaner, Pace.WHOLE, clean, ledger.cleaned)
        await self.attempts_start()
        claimed = await self.all_are_claimed(worker)
        results = [result_of(job, fails=fails) for job in claimed]
        await crew.work(
            worker,
            Pace.WHOLE,
            partial(deliver.record_results, results=results, worker_id=worker.name),
            lambda written: ledger.reported(worker.name, results, set(), written),
        )
        take = partial(orchestrate.apply_results, defaults=POLICY)
        await crew.work(orchestrator, Pace.WHOLE, take, ledger.applied_results)

    async def attempts_start(self) -> None:
        crew = self.crew
        router, orchestrator = crew.actors[Role.ROUTER][0], crew.actors[Role.ORCHESTRATOR][0]
        await crew.work(router, Pace.WHOLE, partial(route_events), nothing)
        for start in (orchestrate.start_all, orchestrate.start_all):
            await crew.work(orchestrator, Pace.WHOLE, partial(start, defaults=POLICY), nothing)

    async def all_are_claimed(self, worker: Actor) -> list[ClaimedJob]:
        """Every job that waits."""
        await self.crew.look()
        ids, claimed = self.crew.ids("jobs", status="Pending"), list[ClaimedJob]()
        claim = partial(deliver.claim_jobs, job_ids=ids, worker_id=worker.name, lease_seconds=LEASE_SECONDS)
        told = partial(self.crew.ledger.claimed, worker.name)
        await self.crew.work(worker, Pace.WHOLE, claim, told, claimed.extend)
        return claimed

    async def an_event_comes(self, draft: EventDraft) -> None:
        producer = self.crew.actors[Role.INGEST][0]
        accept = partial(accept_events, drafts=[draft])
        told = partial(self.crew.ledger.accepted, [draft])
        await self.crew.work(producer, Pace.WHOLE, accept, told)

    async def an_event_fails(self, draft: EventDraft) -> None:
        await self.an_event_comes(draft)
        await self.everybody_works(fails=True)

    async def an_event_is_claimed(self, draft: EventDraft) -> None:
        worker = self.crew.actors[Role.DELIVERY][0]
        await self.an_event_comes(draft)
        await self.attempts_start()
        self.crew.memory[worker.name] += await self.all_are_claimed(worker)
