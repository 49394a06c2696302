"""The queues, each with a redrive queue for messages that failed repeatedly."""

from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from hooksaga.adapters.queues import Queue
from hooksaga.aws.deployment import Environment
from infra.components.exceptions import allow
from infra.components.functions import reader_of

REDRIVE_RETENTION = Duration.days(14)
MESSAGE_RETENTION = Duration.days(4)


class Queues(Construct):
    """`work[queue]`, and `redrive[queue]` for queues that a function reads."""

    def __init__(self, scope: Construct, name: str, env: Environment) -> None:
        super().__init__(scope, name)
        self._env = env
        self.work: dict[Queue, sqs.Queue] = {}
        self.redrive: dict[Queue, sqs.Queue] = {}
        for queue in Queue:
            self._add(queue)

    def allow_sending(self, role: iam.Role, queue: Queue) -> None:
        """Allow SendMessage, which covers batches on SQS; an emulator checks SendMessageBatch."""
        actions = ["sqs:SendMessage", *(["sqs:SendMessageBatch"] if self._env.is_local else [])]
        role.add_to_principal_policy(
            iam.PolicyStatement(actions=actions, resources=[self.work[queue].queue_arn])
        )

    def _add(self, queue: Queue) -> None:
        title = queue.value.replace("_", " ").title().replace(" ", "")
        reader = reader_of(queue)
        if reader is None:
            self.work[queue] = self._queue(f"{title}Queue", queue, "", MESSAGE_RETENTION)
            allow(
                self.work[queue],
                "AwsSolutions-SQS3",
                "It only reports dead letters, which are stored; the user's tools read it.",
            )
            return
        self.redrive[queue] = self._queue(f"{title}Redrive", queue, "-redrive", REDRIVE_RETENTION)
        self.work[queue] = self._queue(
            f"{title}Queue",
            queue,
            "",
            MESSAGE_RETENTION,
            visibility_timeout=Duration.seconds(self._env.visibility_seconds(reader)),
            dead_letter_queue=sqs.DeadLetterQueue(
                max_receive_count=self._env.receives, queue=self.redrive[queue]
            ),
        )

    def _queue(self, name: str, queue: Queue, suffix: str, retention: Duration, **options: Any) -> sqs.Queue:
        return sqs.Queue(
            self,
            name,
            queue_name=f"{self._env.prefix}-{queue.value.replace('_', '-')}{suffix}",
            retention_period=retention,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=None if self._env.is_local else True,  # an emulator uses plain HTTP
            **options,
        )
