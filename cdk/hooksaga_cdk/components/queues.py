"""The queues, each with a redrive queue for messages that failed repeatedly, or that `intake` refused."""

# pyright: reportArgumentType=false
# The CDK's classes name some parameters other than its interfaces do, which pyright takes for a mismatch.

from typing import Any

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from hooksaga.adapters.queues import Queue
from hooksaga.aws.deployment import Environment
from hooksaga_cdk.components.exceptions import allow
from hooksaga_cdk.components.functions import reader_of

LONGEST_RETENTION = Duration.days(14)
"""What SQS allows: for messages that wait for a person, and those of `intake`, the only copies of their events."""
MESSAGE_RETENTION = Duration.days(4)

SOURCES = {"events": "rule/*", "sns": "*"}
"""Services that may send to `intake`, and which of their resources of this account."""


def title_of(queue: Queue) -> str:
    """Return the queue's name as it is written in names of resources and outputs."""
    return queue.value.title().replace("_", "")


class Queues(Construct):
    """`work[queue]`, and `redrive[queue]` for queues that a function reads."""

    def __init__(self, scope: Construct, name: str, env: Environment) -> None:
        super().__init__(scope, name)
        self._env = env
        self.work: dict[Queue, sqs.Queue] = {}
        self.redrive: dict[Queue, sqs.Queue] = {}
        for queue in Queue:
            if queue is not Queue.INTAKE_REDRIVE:
                self._add(queue)
        self.work[Queue.INTAKE_REDRIVE] = self.redrive[Queue.INTAKE]
        self._allow_sources()

    def _allow_sources(self) -> None:
        """Allow EventBridge rules and SNS topics of this account to send to `intake`."""
        stack, intake = Stack.of(self), self.work[Queue.INTAKE]
        for service, resources in SOURCES.items():
            source = f"arn:{stack.partition}:{service}:*:{stack.account}:{resources}"
            intake.add_to_resource_policy(
                iam.PolicyStatement(
                    principals=[iam.ServicePrincipal(f"{service}.amazonaws.com")],
                    actions=["sqs:SendMessage"],
                    resources=[intake.queue_arn],
                    conditions={"ArnLike": {"aws:SourceArn": source}},
                )
            )

    def allow_sending(self, role: iam.Role, queue: Queue) -> None:
        """Allow SendMessage, which covers batches on SQS; an emulator checks SendMessageBatch."""
        actions = ["sqs:SendMessage", *(["sqs:SendMessageBatch"] if self._env.is_local else [])]
        role.add_to_principal_policy(
            iam.PolicyStatement(actions=actions, resources=[self.work[queue].queue_arn])
        )

    def _add(self, queue: Queue) -> None:
        title = title_of(queue)
        reader = reader_of(queue)
        if reader is None:
            self.work[queue] = self._queue(f"{title}Queue", queue, "", LONGEST_RETENTION)
            allow(
                self.work[queue],
                "AwsSolutions-SQS3",
                "It only reports dead letters, which are stored; the user's tools read it.",
            )
            return
        self.redrive[queue] = self._queue(f"{title}Redrive", queue, "-redrive", LONGEST_RETENTION)
        self.work[queue] = self._queue(
            f"{title}Queue",
            queue,
            "",
            LONGEST_RETENTION if queue is Queue.INTAKE else MESSAGE_RETENTION,
            visibility_timeout=Duration.seconds(self._env.visibility_seconds(reader)),
            dead_letter_queue=sqs.DeadLetterQueue(
                max_receive_count=self._env.receives_of(queue), queue=self.redrive[queue]
            ),
        )

    def _queue(self, name: str, queue: Queue, suffix: str, retention: Duration, **options: Any) -> sqs.Queue:
        return sqs.Queue(
            self,
            name,
            queue_name=f"{self._env.prefix}-{queue.dashed}{suffix}",
            retention_period=retention,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=None if self._env.is_local else True,  # an emulator uses plain HTTP
            **options,
        )
