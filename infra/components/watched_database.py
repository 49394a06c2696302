"""Alarms of the database: processor, disk, connections."""

from aws_cdk import aws_cloudwatch as cloudwatch

from hooksaga.aws.deployment import Environment
from infra.components.alarms import FIVE_MINUTES, Alarms, Limit
from infra.components.database import Database

BUSY_PERCENT = 85
TAKEN_SHARE = 0.8
LOW_STORAGE_SHARE = 0.1


def watch_database(alarms: Alarms, env: Environment, database: Database) -> list[cloudwatch.IWidget]:
    instance, wanted = database.instance, env.database
    processor = instance.metric_cpu_utilization(period=FIVE_MINUTES)
    free = instance.metric_free_storage_space(period=FIVE_MINUTES, statistic=cloudwatch.Stats.MINIMUM)
    taken = instance.metric_database_connections(period=FIVE_MINUTES, statistic=cloudwatch.Stats.MAXIMUM)
    alarms.add("database-busy", "database", processor, Limit(BUSY_PERCENT, periods=3))
    low = LOW_STORAGE_SHARE * wanted.storage_gb * 2**30
    alarms.add("database-storage-low", "database", free, Limit(low, below=True))
    alarms.add(
        "database-connections", "database", taken, Limit(TAKEN_SHARE * wanted.connection_limit, periods=2)
    )
    return [cloudwatch.GraphWidget(title="Database", left=[processor], right=[taken], width=12)]
