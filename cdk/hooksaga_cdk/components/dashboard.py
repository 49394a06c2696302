"""Dashboard with the metrics that the alarms watch."""

from collections.abc import Sequence

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from hooksaga.aws.deployment import Environment

IN_A_ROW = 2


class Dashboard(Construct):
    def __init__(
        self, scope: Construct, name: str, env: Environment, widgets: Sequence[cloudwatch.IWidget]
    ) -> None:
        super().__init__(scope, name)
        board = cloudwatch.Dashboard(self, "Board", dashboard_name=env.prefix)
        for start in range(0, len(widgets), IN_A_ROW):
            board.add_widgets(*widgets[start : start + IN_A_ROW])
