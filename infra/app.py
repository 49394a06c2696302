"""The CDK app: `python -m infra.app`, or any `cdk` command through cdk.json.

    cdk deploy --all                   dev, on AWS
    cdk deploy --all -c env=prod       another environment of shared/hooksaga/aws/deployment.py
    cdk deploy --all -c target=local   an emulator; HOOKSAGA_DATABASE_URL names the database

A synth needs no account and no network, because nothing is looked up.
"""

import os
from collections.abc import Callable
from dataclasses import replace

from infra.node import use_current_node

use_current_node()  # before the CDK starts one

from aws_cdk import App, Stack, StackSynthesizer, Validations  # noqa: E402
from cdk_nag import AwsSolutionsChecks  # noqa: E402

from hooksaga.aws.deployment import LOCAL, Environment, InvalidDeployment, environment_named  # noqa: E402
from hooksaga_cdk import Hooksaga  # noqa: E402
from infra.given import given_by  # noqa: E402

FORWARDED_VARIABLES = (
    "HOOKSAGA_DATABASE_URL",
    "HOOKSAGA_EGRESS_ALLOW",
    "HOOKSAGA_CA_FILE",
    "HOOKSAGA_BASE_DELAY_SECONDS",
    "HOOKSAGA_LOG_LEVEL",
    "HOOKSAGA_PUBLIC_URL",
)
"""Environment variables that are passed on to the functions of a local deployment."""


def build(app: App, synthesizer: StackSynthesizer | None = None) -> Stack:
    """Add the stack that the context selects, and return it. Raises InvalidDeployment."""
    if app.node.try_get_context("target") == "local":
        env = replace(LOCAL, local_python=app.node.try_get_context("python"))
        variables = {name: os.environ[name] for name in FORWARDED_VARIABLES if os.environ.get(name)}
        stack = Stack(app, env.prefix, description="hooksaga", synthesizer=synthesizer)
        Hooksaga(stack, "Hooks", env, variables=variables)
        return stack
    return build_on_aws(app, environment_named(app.node.try_get_context("env") or "dev"), synthesizer)


def build_on_aws(app: App, env: Environment, synthesizer: StackSynthesizer | None = None) -> Stack:
    """Add the stack of one environment, checked with the AwsSolutions rules. Raises InvalidDeployment."""
    stack = Stack(app, env.prefix, description="hooksaga", synthesizer=synthesizer)
    Hooksaga(stack, "Hooks", env, **given_by(stack))
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return stack


def main(build: Callable[[App], object] = build) -> None:
    """Synthesize the app that `build` fills. An invalid deployment ends the process with its message."""
    app = App()
    try:
        build(app)
    except InvalidDeployment as problem:
        raise SystemExit(str(problem)) from None
    app.synth()


if __name__ == "__main__":
    main()
