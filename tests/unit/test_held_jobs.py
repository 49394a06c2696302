"""Jobs that are claimed ahead: whose turn it is, and that none is forgotten."""

from datetime import UTC, datetime
from uuid import UUID

from hooksaga.stages.job_rows import ClaimedJob
from hooksaga.worker.held_jobs import Claim, HeldJobs

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def claim(job_id: int, subscription_id: int) -> Claim:
    job = ClaimedJob(
        id=job_id,
        saga_id=job_id,
        subscription_id=subscription_id,
        attempt_number=1,
        claim_count=1,
        leased_at=NOW,
        lease_until=NOW,
        event_id=job_id,
        webhook_id=UUID(int=job_id),
        traceparent=None,
        event_type="order.created",
        event_created_at=NOW,
        payload="{}",
        callback_url="https://example.com/",
        headers="{}",
        timeout_seconds=None,
        deliverable=True,
        secrets=[],
    )
    return Claim(job, 0.0)


def held(*pairs: tuple[int, int]) -> HeldJobs:
    jobs = HeldJobs()
    for job_id, subscription_id in pairs:
        jobs.put(claim(job_id, subscription_id))
    return jobs


def everybody(_: int) -> bool:
    return True


def taken(jobs: HeldJobs, tries: int = 10) -> list[int]:
    ids: list[int] = []
    while one := jobs.take(everybody, tries):
        ids.append(one.job.id)
    return ids


def test_subscriptions_take_turns_and_each_ones_jobs_keep_their_order() -> None:
    assert taken(held((1, 7), (2, 7), (3, 7), (4, 8), (5, 9), (6, 9))) == [1, 4, 5, 2, 6, 3]


def test_one_that_may_not_begin_holds_up_nobody() -> None:
    jobs = held((1, 7), (2, 8))
    assert jobs.take(lambda subscription_id: subscription_id != 7, 2) == claim(2, 8)
    assert jobs.take(lambda subscription_id: subscription_id != 7, 2) is None
    assert jobs.take(everybody, 1) == claim(1, 7)


def test_only_so_many_are_asked_and_the_next_time_the_others() -> None:
    jobs = held((1, 7), (2, 8), (3, 9))
    assert jobs.take(lambda subscription_id: subscription_id == 9, 2) is None
    assert jobs.take(lambda subscription_id: subscription_id == 9, 1) == claim(3, 9)


def test_it_counts_what_it_holds() -> None:
    jobs = held((1, 7), (2, 7), (3, 8))
    assert (len(jobs), jobs.per_subscription()) == (3, {7: 2, 8: 1})
    jobs.take(everybody, 1)
    assert (len(jobs), jobs.per_subscription()) == (2, {7: 1, 8: 1})


def test_what_is_left_is_given_back_whole() -> None:
    jobs = held((1, 7), (2, 7), (3, 8))
    assert sorted(job.id for job in jobs.take_all()) == [1, 2, 3]
    assert (len(jobs), taken(jobs)) == (0, [])


def test_what_is_held_for_long_is_given_back_and_the_rest_keeps_its_turn() -> None:
    jobs = held((1, 7), (2, 7), (3, 8), (4, 9))
    jobs.put(Claim(claim(5, 7).job, 10.0))
    jobs.put(Claim(claim(6, 9).job, 10.0))
    assert jobs.take_older(0.0) == []
    assert sorted(job.id for job in jobs.take_older(10.0)) == [1, 2, 3, 4]
    assert (len(jobs), jobs.per_subscription()) == (2, {7: 1, 9: 1})
    assert taken(jobs) == [5, 6]
