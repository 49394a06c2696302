"""The queues of SQS mode, each with a redrive queue, as on AWS."""

from dataclasses import dataclass

from hooksaga.local.sqs.sqs_api import SqsApi

INTAKE = "intake"
ID_QUEUES = ("routing", "orchestration", "delivery", "delivery-slow")
"""Queues whose messages carry only ids. A malformed one is deleted; `intake` sets it aside."""

WORK_QUEUES = (INTAKE, *ID_QUEUES)
DEAD_TASKS = "dead-tasks"
REDRIVE_RETENTION_SECONDS = 14 * 24 * 3600


@dataclass(frozen=True, slots=True)
class QueueSet:
    """URLs by name; `redrive` by the name of the work queue."""

    work: dict[str, str]
    redrive: dict[str, str]
    dead_tasks: str

    def settings(self) -> dict[str, str]:
        urls = {**self.work, DEAD_TASKS: self.dead_tasks, f"{INTAKE}-redrive": self.redrive[INTAKE]}
        return {f"HOOKSAGA_{name.replace('-', '_').upper()}_QUEUE_URL": url for name, url in urls.items()}


async def create_queues(
    api: SqsApi, prefix: str, *, visibility_seconds: dict[str, int], max_receive_count: int = 5
) -> QueueSet:
    """Create all queues. `visibility_seconds`: by the name of the work queue."""
    work: dict[str, str] = {}
    redrive: dict[str, str] = {}
    for name in WORK_QUEUES:
        redrive[name] = await api.create_queue(
            f"{prefix}-{name}-redrive", MessageRetentionPeriod=REDRIVE_RETENTION_SECONDS
        )
        target = (await api.attributes(redrive[name]))["QueueArn"]
        work[name] = await api.create_queue(
            f"{prefix}-{name}",
            VisibilityTimeout=visibility_seconds[name],
            RedrivePolicy={"deadLetterTargetArn": target, "maxReceiveCount": max_receive_count},
        )
    return QueueSet(work, redrive, await api.create_queue(f"{prefix}-{DEAD_TASKS}"))
