"""The CDK app of the receiver: a function with a URL, and the table in which it counts."""

# pyright: reportArgumentType=false
# The CDK's classes name some parameters other than its interfaces do, which pyright takes for a mismatch.

from pathlib import Path

from infra.node import use_current_node

use_current_node()  # before the CDK starts one

from aws_cdk import App, CfnOutput, Duration, RemovalPolicy, Stack, Tags  # noqa: E402
from aws_cdk import aws_dynamodb as dynamodb  # noqa: E402
from aws_cdk import aws_lambda as lambda_  # noqa: E402
from aws_cdk import aws_logs as logs  # noqa: E402
from constructs import Construct  # noqa: E402

from infra.proof.place import NAME  # noqa: E402

CODE = Path(__file__).parent / "receiver_function"


class ReceiverStack(Stack):
    """All names begin with `<prefix>-receiver`."""

    def __init__(self, scope: Construct, prefix: str) -> None:
        super().__init__(scope, f"{prefix}-receiver", description="hooksaga: receiver of the proof")
        name = f"{prefix}-receiver"
        table = dynamodb.Table(
            self,
            "Table",
            table_name=name,
            partition_key=dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            removal_policy=RemovalPolicy.DESTROY,
        )
        log = logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/aws/lambda/{name}",
            retention=logs.RetentionDays.ONE_WEEK,
            removal_policy=RemovalPolicy.DESTROY,
        )
        function = lambda_.Function(
            self,
            "Function",
            function_name=name,
            handler="handler.handler",
            runtime=lambda_.Runtime.PYTHON_3_13,
            code=lambda_.Code.from_asset(str(CODE), exclude=["__pycache__", "__init__.py"]),
            environment={"TABLE": name},
            timeout=Duration.seconds(10),
            memory_size=512,
            log_group=log,
        )
        table.grant_read_write_data(function)
        url = function.add_function_url(auth_type=lambda_.FunctionUrlAuthType.NONE)
        CfnOutput(self, "ReceiverUrl", value=url.url)
        CfnOutput(self, "ReceiverTable", value=table.table_name)


def main() -> None:
    app = App()
    ReceiverStack(app, app.node.try_get_context("prefix"))
    Tags.of(app).add("hooksaga", NAME)
    app.synth()


if __name__ == "__main__":
    main()
