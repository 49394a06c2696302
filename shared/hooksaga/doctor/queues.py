"""Checks of the configured queues: existence, visibility timeout and redrive queue."""

import json
from collections.abc import Iterator
from typing import Any

from hooksaga.aws.deployment import Environment, local_environment
from hooksaga.doctor.check import Check, skipped
from hooksaga.runtime.settings import Settings

NAME = "queues"
READERS = {
    "intake": "intake",
    "routing": "router",
    "orchestration": "orchestrator",
    "delivery": "delivery",
    "delivery_slow": "delivery",
}


def check_queues(settings: Settings) -> Check:
    """Check the queues. Skipped in polling mode, which has none."""
    urls = settings.queue_urls
    if not urls:
        return skipped(NAME, "not set: polling mode needs no queues")
    import boto3  # not needed in polling mode

    sqs: Any = boto3.client("sqs")  # pyright: ignore[reportUnknownMemberType]
    env = local_environment(settings.lease_seconds)
    faults = [fault for name, url in urls.items() for fault in _wrong_queue(sqs, env, name, url)]
    missing = sorted(READERS.keys() - urls.keys())
    faults += [f"{name}: HOOKSAGA_{name.upper()}_QUEUE_URL is not set" for name in missing]
    return Check(NAME, faults, ", ".join(urls))


def _wrong_queue(sqs: Any, env: Environment, name: str, url: str) -> Iterator[str]:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    except (BotoCoreError, ClientError) as error:
        yield f"{name}: {error}"
        return
    if name in READERS:
        yield from wrong_attributes(env, name, found)


def wrong_attributes(env: Environment, name: str, found: dict[str, str]) -> Iterator[str]:
    """Return the faults of one work queue. Redrive queues get messages only after faults of hooksaga, not of
    receivers."""
    wanted = env.visibility_seconds(READERS[name])
    if (visibility := int(found["VisibilityTimeout"])) < wanted:
        rule = "six times its function's timeout, and more than a lease"
        yield f"{name}: visibility timeout {visibility} s, required are at least {wanted} s: {rule}"
    if not json.loads(found.get("RedrivePolicy", "{}")).get("deadLetterTargetArn"):
        yield f"{name}: no redrive queue: a message that cannot be processed returns for days"
