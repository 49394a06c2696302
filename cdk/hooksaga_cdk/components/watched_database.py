"""Alarms of the database: processor, memory, disk, connections, transaction ids."""

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_rds as rds

from hooksaga.aws.deployment import Environment
from hooksaga.cost.capacity import STRIPED_GB, VOLUME
from hooksaga_cdk.components.alarms import FIVE_MINUTES, Alarms, Limit
from hooksaga_cdk.components.database import Database

BUSY_PERCENT = 85
TAKEN_SHARE = 0.8
LOW_STORAGE_SHARE = 0.1
LOW_MEMORY_BYTES = 200 * 2**20
OLD_TRANSACTION_IDS = 500_000_000
"""PostgreSQL freezes rows from 200 million on, and refuses to write at about two billion."""
LOW_CREDITS = 30
"""Minutes of a whole processor."""


def watch_database(alarms: Alarms, env: Environment, database: Database) -> list[cloudwatch.IWidget]:
    instance, wanted = database.instance, env.database
    processor = instance.metric_cpu_utilization(period=FIVE_MINUTES)
    free = instance.metric_free_storage_space(period=FIVE_MINUTES, statistic=cloudwatch.Stats.MINIMUM)
    taken = instance.metric_database_connections(period=FIVE_MINUTES, statistic=cloudwatch.Stats.MAXIMUM)
    memory = instance.metric_freeable_memory(period=FIVE_MINUTES, statistic=cloudwatch.Stats.MINIMUM)
    ids = _metric(instance, "MaximumUsedTransactionIDs", cloudwatch.Stats.MAXIMUM)
    operations = _operations(instance)
    low = LOW_STORAGE_SHARE * wanted.storage_gb * 2**30
    available, _ = VOLUME[wanted.storage_gb >= STRIPED_GB]
    for page, metric, limit in (
        ("database-busy", processor, Limit(BUSY_PERCENT, periods=3)),
        ("database-memory-low", memory, Limit(LOW_MEMORY_BYTES, periods=3, below=True)),
        ("database-storage-low", free, Limit(low, below=True)),
        ("database-disk-busy", operations, Limit(TAKEN_SHARE * available, periods=3)),
        ("database-connections", taken, Limit(TAKEN_SHARE * wanted.connection_limit, periods=2)),
        ("transaction-ids-old", ids, Limit(OLD_TRANSACTION_IDS)),
    ):
        alarms.add(page, "database", metric, limit)
    if wanted.instance_class.startswith("t"):
        balance = _metric(instance, "CPUCreditBalance", cloudwatch.Stats.MINIMUM)
        alarms.add("database-credits-low", "database", balance, Limit(LOW_CREDITS, periods=2, below=True))
    return [
        cloudwatch.GraphWidget(title="Database", left=[processor], right=[taken], width=12),
        cloudwatch.GraphWidget(
            title="Database, memory and disk", left=[memory], right=[operations], width=12
        ),
    ]


def _metric(instance: rds.DatabaseInstance, name: str, statistic: str) -> cloudwatch.Metric:
    return instance.metric(name, statistic=statistic, period=FIVE_MINUTES)


def _operations(instance: rds.DatabaseInstance) -> cloudwatch.MathExpression:
    """Return the reads and writes of the disk per second."""
    parts = {
        "reads": _metric(instance, "ReadIOPS", cloudwatch.Stats.AVERAGE),
        "writes": _metric(instance, "WriteIOPS", cloudwatch.Stats.AVERAGE),
    }
    return cloudwatch.MathExpression(
        expression="reads + writes",
        using_metrics=parts,
        label="disk operations a second",
        period=FIVE_MINUTES,
    )
