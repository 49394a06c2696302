"""Whether the configured keys open what is sealed: signing secrets, and header values of subscriptions."""

from hooksaga.doctor.check import Check
from hooksaga.operations.reseal_secrets import Resealed

SECRETS = "every signing secret can be opened"
HEADERS = "every header value of a subscription is sealed, and can be opened"


def judge_secrets(done: Resealed) -> Check:
    """What a dry run of `secrets reseal` has found."""
    faults = [
        f"subscription {one}: no configured key opens its secret, so nothing can be signed for it: bring its key back, "
        f"or `hooksaga subscriptions rotate-secret {one}`"
        for one in done.unreadable
    ]
    older = f", {done.changed} of them under an older key" if done.changed else ""
    return Check(SECRETS, faults, f"{done.checked} secrets{older}")


def judge_headers(done: Resealed) -> Check:
    """What a dry run of `secrets reseal` has found in the headers of subscriptions."""
    faults = [
        f"subscription {one}: no configured key opens its headers, so nothing can be sent to it: bring its key back, "
        f"or `hooksaga subscriptions update {one} --header NAME=VALUE`, for each of them"
        for one in done.unreadable
    ]
    if done.in_clear:
        faults.append(
            f"{len(done.in_clear)} subscriptions have header values in clear: `hooksaga secrets reseal` seals them"
        )
    older = done.changed - len(done.in_clear)
    seen = f", {older} of them under an older key" if older > 0 else ""
    return Check(HEADERS, faults, f"{done.checked} subscriptions with headers{seen}")
