"""Alarms of the queues: redrive queues and waiting messages."""

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from hooksaga.adapters.queues import Queue
from hooksaga_cdk.components.alarms import FIVE_MINUTES, Alarms, Limit
from hooksaga_cdk.components.queues import Queues

WAITING_SECONDS = 300


def watch_queues(alarms: Alarms, queues: Queues) -> list[cloudwatch.IWidget]:
    for queue, redrive in queues.redrive.items():
        waiting = redrive.metric_approximate_number_of_messages_visible(
            period=Duration.minutes(1), statistic=cloudwatch.Stats.MAXIMUM
        )
        page = "intake-refused" if queue is Queue.INTAKE else "redrive-queue-not-empty"
        alarms.add(page, queue.value, waiting, Limit(1))
        oldest = queues.work[queue].metric_approximate_age_of_oldest_message(
            period=FIVE_MINUTES, statistic=cloudwatch.Stats.MAXIMUM
        )
        alarms.add("messages-wait", queue.value, oldest, Limit(WAITING_SECONDS, periods=2))
    return [_depths(queues), _ages(queues)]


def _depths(queues: Queues) -> cloudwatch.GraphWidget:
    work = [queue.metric_approximate_number_of_messages_visible() for queue in queues.work.values()]
    redrive = [queue.metric_approximate_number_of_messages_visible() for queue in queues.redrive.values()]
    return cloudwatch.GraphWidget(title="Messages that wait", left=work, right=redrive, width=12)


def _ages(queues: Queues) -> cloudwatch.GraphWidget:
    ages = [queues.work[queue].metric_approximate_age_of_oldest_message() for queue in queues.redrive]
    return cloudwatch.GraphWidget(title="Age of the oldest message, seconds", left=ages, width=12)
