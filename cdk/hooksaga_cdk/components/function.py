"""One Lambda function with its own role, which may only write its log."""

# pyright: reportArgumentType=false
# The CDK's classes name some parameters other than its interfaces do, which pyright takes for a mismatch.

from collections.abc import Mapping

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from hooksaga.aws.deployment import Environment, FunctionLimits
from hooksaga_cdk.bundling import ARM, CERTIFICATES, RUNTIME, code_of, this_machine
from hooksaga_cdk.components.exceptions import allow
from hooksaga_cdk.components.kept_logs import log_group
from hooksaga_cdk.components.place import Place

_NETWORK_INTERFACES = (
    "ec2:CreateNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:DeleteNetworkInterface",
    "ec2:AssignPrivateIpAddresses",
    "ec2:UnassignPrivateIpAddresses",
)


class LeastFunction(Construct):
    """`place` is None without a VPC. `repeats`: messages that it sends may start it again many times."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        env: Environment,
        limits: FunctionLimits,
        place: Place | None,
        environment: Mapping[str, str],
        reserve: bool = False,
        repeats: bool = False,
    ) -> None:
        super().__init__(scope, name)
        self._env = env
        self.name = f"{env.prefix}-{name}"
        self.log = log_group(self, "Log", f"/aws/lambda/{self.name}", env)
        self.role = self._role(place)
        self._repeats = repeats
        self.function = self._function(name, limits, place, environment, reserve)
        allow(
            self.function,
            "AwsSolutions-L1",
            "The Python that bundles are made for: hooksaga_cdk.bundling names both.",
        )

    def _role(self, place: Place | None) -> iam.Role:
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        self.log.grant_write(role)
        if place is not None:
            self._allow_network_interfaces(role)
        allow(
            role,
            "AwsSolutions-IAM5[Resource::*]",
            "X-Ray has no resources. Lambda makes the interfaces, and the function's own code is denied these actions.",
        )
        return role

    def _function(
        self,
        name: str,
        limits: FunctionLimits,
        place: Place | None,
        environment: Mapping[str, str],
        reserve: bool,
    ) -> lambda_.Function:
        machine = this_machine(self._env.local_python) if self._env.is_local else ARM
        return lambda_.Function(
            self,
            "Function",
            function_name=self.name,
            handler=f"functions.{name}.handler.handler",
            runtime=RUNTIME,
            architecture=machine.architecture,
            code=code_of(name, machine, self._env.database.ca_file or CERTIFICATES),
            role=self.role,
            log_group=self.log,
            environment=dict(environment),
            timeout=Duration.seconds(limits.timeout_seconds),
            memory_size=limits.memory_mb,
            reserved_concurrent_executions=limits.concurrency if reserve else None,
            recursive_loop=self._recursive_loop(),
            tracing=lambda_.Tracing.ACTIVE if self._env.tracing else lambda_.Tracing.DISABLED,
            vpc=place.vpc if place else None,
            vpc_subnets=place.subnets if place else None,
            security_groups=[place.security_group] if place else None,
        )

    def _recursive_loop(self) -> lambda_.RecursiveLoop | None:
        """Allow recursive loops. Lambda stops a chain of messages that starts a function about 16 times; a delivery
        with short retries is such a chain, with two starts of the orchestrator per attempt, and max_retry_limit ends
        it."""
        return lambda_.RecursiveLoop.ALLOW if self._repeats and not self._env.is_local else None

    def _allow_network_interfaces(self, role: iam.Role) -> None:
        """Lambda needs this right to connect a function to a VPC. The function's own code is denied it."""
        stack = Stack.of(self)
        itself = f"arn:{stack.partition}:lambda:{stack.region}:{stack.account}:function:{self.name}"
        for effect, conditions in (
            (iam.Effect.ALLOW, None),
            (iam.Effect.DENY, {"ArnEquals": {"lambda:SourceFunctionArn": itself}}),
        ):
            role.add_to_policy(
                iam.PolicyStatement(
                    effect=effect, actions=list(_NETWORK_INTERFACES), resources=["*"], conditions=conditions
                )
            )
