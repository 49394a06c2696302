"""Jobs that a lane has claimed and holds until a place is free, by subscription."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from hooksaga.stages.job_rows import ClaimedJob


class Claim(NamedTuple):
    """A claimed job. claimed_at: monotonic clock before the claim; the lease ends no earlier than computed from it."""

    job: ClaimedJob
    claimed_at: float


class HeldJobs:
    """Held jobs: each subscription's in the order of their claims, the subscriptions in turn."""

    def __init__(self) -> None:
        self._of: dict[int, deque[Claim]] = {}
        self._turn: deque[int] = deque()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def per_subscription(self) -> dict[int, int]:
        """Return the number of held jobs by subscription id."""
        return {subscription_id: len(claims) for subscription_id, claims in self._of.items()}

    def put(self, claim: Claim) -> None:
        subscription_id = claim.job.subscription_id
        if subscription_id not in self._of:
            self._of[subscription_id] = deque()
            self._turn.append(subscription_id)
        self._of[subscription_id].append(claim)
        self._count += 1

    def take(self, may_begin: Callable[[int], bool], tries: int) -> Claim | None:
        """Take the next job whose subscription may start one; asks at most `tries` subscriptions."""
        for _ in range(min(tries, len(self._turn))):
            subscription_id = self._turn.popleft()
            if may_begin(subscription_id):
                return self._pop(subscription_id)
            self._turn.append(subscription_id)
        return None

    def _pop(self, subscription_id: int) -> Claim:
        claims = self._of[subscription_id]
        claim = claims.popleft()
        self._count -= 1
        if claims:
            self._turn.append(subscription_id)
        else:
            del self._of[subscription_id]
        return claim

    def take_older(self, than: float) -> list[ClaimedJob]:
        """Take every job that was claimed before `than`, a time of the monotonic clock."""
        old = [claim.job for claims in self._of.values() for claim in claims if claim.claimed_at < than]
        if old:
            kept = {
                key: deque(one for one in claims if one.claimed_at >= than)
                for key, claims in self._of.items()
            }
            self._of = {key: claims for key, claims in kept.items() if claims}
            self._turn = deque(key for key in self._turn if key in self._of)
            self._count -= len(old)
        return old

    def take_all(self) -> list[ClaimedJob]:
        """Take all remaining jobs."""
        jobs = [claim.job for claims in self._of.values() for claim in claims]
        self._of.clear()
        self._turn.clear()
        self._count = 0
        return jobs
