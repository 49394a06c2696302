"""Each deployment is synthesised once, without building bundles: what they hold has tests of its own."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hooksaga.aws.deployment import ENVIRONMENTS, Environment
from hooksaga.aws.latency import Latency
from infra.node import use_current_node
from tests.infra.deployment import Deployment

use_current_node()  # before the CDK starts one

ROOT = Path(__file__).resolve().parents[2]
NO_BUNDLES: dict[str, Any] = {"aws:cdk:bundling-stacks": []}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process synthesises for all tests of this folder."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.infra)


def changed_dev(folder: Path, env: Environment) -> Deployment:
    """Synthesise dev with other settings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ENVIRONMENTS, "dev", env)
        return synthesise(folder)


def synthesise(folder: Path, **context: Any) -> Deployment:
    """As `cdk synth -c …` does. Raises RuntimeError when a rule of AWS's good practice is broken without a reason."""
    from aws_cdk import App

    from infra.app import build

    ours = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = App(outdir=str(folder), context={**ours, **NO_BUNDLES, **context})
    build(app)
    app.synth()
    return Deployment.read(folder)


@pytest.fixture(scope="session")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    return synthesise(tmp_path_factory.mktemp("dev"))


@pytest.fixture(scope="session")
def prod(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    return synthesise(tmp_path_factory.mktemp("prod"), env="prod")


@pytest.fixture(scope="session")
def with_proxy(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """Dev with a proxy before its database."""
    dev = ENVIRONMENTS["dev"]
    proxied = replace(dev, database=replace(dev.database, proxy=True))
    return changed_dev(tmp_path_factory.mktemp("with_proxy"), proxied)


@pytest.fixture(scope="session")
def economical(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """Dev with windows, and with traces."""
    env = replace(ENVIRONMENTS["dev"].with_latency(Latency.ECONOMY), tracing=True)
    return changed_dev(tmp_path_factory.mktemp("economical"), env)


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    before = os.environ.get("HOOKSAGA_DATABASE_URL")
    os.environ["HOOKSAGA_DATABASE_URL"] = "postgresql://owner@db.example/hooksaga"
    try:
        return synthesise(tmp_path_factory.mktemp("local"), target="local")
    finally:
        os.environ.pop("HOOKSAGA_DATABASE_URL")
        if before is not None:
            os.environ["HOOKSAGA_DATABASE_URL"] = before


@pytest.fixture(params=["dev", "prod"])
def on_aws(request: pytest.FixtureRequest) -> Deployment:
    return request.getfixturevalue(request.param)


@pytest.fixture(params=["dev", "prod", "local"])
def anywhere(request: pytest.FixtureRequest) -> Deployment:
    return request.getfixturevalue(request.param)
