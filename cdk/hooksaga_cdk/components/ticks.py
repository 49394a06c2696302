"""A tick every minute for the functions that find lost work by SQL. The next tick finds what one has missed."""

# pyright: reportArgumentType=false
# The CDK's classes name some parameters other than its interfaces do, which pyright takes for a mismatch.

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from hooksaga.aws.deployment import Environment
from hooksaga_cdk.components.function import LeastFunction
from hooksaga_cdk.components.functions import DESIGNS

EVERY = Duration.minutes(1)


def rule_name(function: LeastFunction) -> str:
    return f"{function.name}-tick"


class Ticks(Construct):
    """EventBridge rules, not EventBridge Scheduler: emulators support rules."""

    def __init__(
        self, scope: Construct, name: str, env: Environment, functions: dict[str, LeastFunction]
    ) -> None:
        super().__init__(scope, name)
        for function_name, design in DESIGNS.items():
            if design.ticks:
                self._add(env, function_name, functions[function_name])

    def _add(self, env: Environment, name: str, function: LeastFunction) -> None:
        rule = events.Rule(self, name, rule_name=rule_name(function), schedule=events.Schedule.rate(EVERY))
        rule.add_target(targets.LambdaFunction(function.function, retry_attempts=0, max_event_age=EVERY))
        if not env.is_local:
            # The target's retries cover EventBridge's invocation; Lambda then has a queue and two retries of its own.
            function.function.configure_async_invoke(retry_attempts=0, max_event_age=EVERY)
