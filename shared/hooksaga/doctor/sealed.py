"""Checks that the configured keys decrypt signing secrets and header values."""

from hooksaga.doctor.check import Check
from hooksaga.operations.reseal_secrets import Resealed

SECRETS = "every signing secret can be decrypted"
HEADERS = "every header value is encrypted and can be decrypted"


def judge_secrets(done: Resealed) -> Check:
    faults = [
        f"subscription {one}: no configured key decrypts its secret, so deliveries cannot be signed: restore the key, "
        f"or run `hooksaga subscriptions rotate-secret {one}`"
        for one in done.unreadable
    ]
    older = f", {done.changed} of them encrypted with an older key" if done.changed else ""
    return Check(SECRETS, faults, f"{done.checked} secrets{older}")


def judge_headers(done: Resealed) -> Check:
    faults = [
        f"subscription {one}: no configured key decrypts its headers, so deliveries cannot be sent: restore the key, "
        f"or run `hooksaga subscriptions update {one} --header NAME=VALUE` for each header"
        for one in done.unreadable
    ]
    if done.in_clear:
        faults.append(
            f"{len(done.in_clear)} subscriptions have plain-text header values: run `hooksaga secrets reseal`"
        )
    older = done.changed - len(done.in_clear)
    seen = f", {older} of them encrypted with an older key" if older > 0 else ""
    return Check(HEADERS, faults, f"{done.checked} subscriptions with headers{seen}")
