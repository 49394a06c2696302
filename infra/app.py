"""The CDK app: `python -m infra.app`, or any `cdk` command through cdk.json.

    cdk deploy --all                   dev, on AWS
    cdk deploy --all -c env=prod       another environment of shared/hooksaga/aws/deployment.py
    cdk deploy --all -c target=local   an emulator; HOOKSAGA_DATABASE_URL names the database

A synth needs no account and no network, because nothing is looked up.
"""

import os
from dataclasses import replace

from infra.node import use_current_node

use_current_node()  # before the CDK starts one

from aws_cdk import App, Tags, Validations  # noqa: E402
from cdk_nag import AwsSolutionsChecks  # noqa: E402

from hooksaga.aws.deployment import LOCAL, Environment, InvalidDeployment, environment_named  # noqa: E402
from infra.components.database_access import GivenDatabase  # noqa: E402
from infra.stacks.api import ApiStack  # noqa: E402
from infra.stacks.database import DatabaseStack  # noqa: E402
from infra.stacks.network import NetworkStack  # noqa: E402
from infra.stacks.observability import ObservabilityStack  # noqa: E402
from infra.stacks.pipeline import PipelineStack  # noqa: E402

FORWARDED_VARIABLES = (
    "HOOKSAGA_EGRESS_ALLOW",
    "HOOKSAGA_CA_FILE",
    "HOOKSAGA_BASE_DELAY_SECONDS",
    "HOOKSAGA_LOG_LEVEL",
    "HOOKSAGA_PUBLIC_URL",
)
"""Environment variables that are passed on to the functions of a local deployment."""


def build(app: App) -> Environment:
    """Add the stacks that the context selects. Raises InvalidDeployment."""
    if app.node.try_get_context("target") == "local":
        return _build_local(app)
    env = environment_named(app.node.try_get_context("env") or "dev")
    build_on_aws(app, env)
    return env


def build_on_aws(app: App, env: Environment) -> None:
    """Add all stacks, and check them with the AwsSolutions rules."""
    network = NetworkStack(app, env)
    database = DatabaseStack(app, env, network.places).database
    pipeline = PipelineStack(app, env, places=network.places, database=database.access, extra={})
    api = ApiStack(app, env, pipeline.functions).api
    ObservabilityStack(
        app, env, queues=pipeline.queues, functions=pipeline.functions, api=api, database=database
    )
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    Tags.of(app).add("hooksaga", env.name, exclude_resource_types=["AWS::RDS::DBProxyTargetGroup"])


def _build_local(app: App) -> Environment:
    """Build the stacks for an emulator: no network, database, proxy or firewall."""
    url = os.environ.get("HOOKSAGA_DATABASE_URL")
    if not url:
        raise InvalidDeployment(
            "the local target needs HOOKSAGA_DATABASE_URL, which its functions connect to"
        )
    env = replace(LOCAL, local_python=app.node.try_get_context("python"))
    extra = {name: os.environ[name] for name in FORWARDED_VARIABLES if os.environ.get(name)}
    pipeline = PipelineStack(app, env, places=None, database=GivenDatabase(url), extra=extra)
    api = ApiStack(app, env, pipeline.functions).api
    ObservabilityStack(app, env, queues=pipeline.queues, functions=pipeline.functions, api=api, database=None)
    return env


def main() -> None:
    app = App()
    try:
        build(app)
    except InvalidDeployment as problem:
        raise SystemExit(str(problem)) from None
    app.synth()


if __name__ == "__main__":
    main()
