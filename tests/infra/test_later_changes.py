"""Changes of an existing deployment: no stack removes an export that another one uses."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from hooksaga.aws.deployment import ENVIRONMENTS, Nat
from tests.infra.conftest import changed_dev
from tests.infra.deployment import Deployment


@pytest.fixture(scope="module")
def with_proxy(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """Dev with a proxy before its database."""
    dev = ENVIRONMENTS["dev"]
    proxied = replace(dev, database=replace(dev.database, proxy=True))
    return changed_dev(tmp_path_factory.mktemp("with_proxy"), proxied)


def test_a_proxy_is_added_in_one_deployment(dev: Deployment, with_proxy: Deployment) -> None:
    """The stacks change one after the other, each while those after it are as they were."""
    assert imports(dev) <= exports(with_proxy)


def test_a_proxy_is_taken_away_once_the_functions_do_not_use_it(
    dev: Deployment, with_proxy: Deployment
) -> None:
    """The pipeline alone first, then all."""
    of_pipeline = imports(dev, "pipeline")
    assert of_pipeline <= exports(with_proxy)
    assert imports(with_proxy, "pipeline") - exports(dev), "else one deployment would do"
    assert imports(with_proxy, "database") <= exports(dev)
    assert imports(with_proxy, "observability") <= exports(dev)


def test_each_way_out_has_an_address_of_its_own(dev: Deployment, tmp_path: Path) -> None:
    """A gateway cannot be made with the address that an instance still has."""
    changed = changed_dev(tmp_path / "changed", replace(ENVIRONMENTS["dev"], nat=Nat.GATEWAY))
    assert len(changed.of_type("AWS::EC2::NatGateway")) == 1
    assert not set(dev.of_type("AWS::EC2::EIP")) & set(changed.of_type("AWS::EC2::EIP"))
    assert imports(dev) <= exports(changed)


def exports(deployment: Deployment) -> set[str]:
    return {
        output["Export"]["Name"]
        for template in deployment.templates
        for output in template.get("Outputs", {}).values()
        if "Export" in output
    }


def imports(deployment: Deployment, stack: str | None = None) -> set[str]:
    """Return the imports of the stack, or of all stacks."""
    return {
        name
        for template in deployment.templates
        if stack is None or template["Description"].startswith(_DESCRIPTIONS[stack])
        for name in _imported(template)
    }


_DESCRIPTIONS = {
    "database": "hooksaga: database",
    "pipeline": "hooksaga: queues and functions",
    "observability": "hooksaga: alarms",
}


def _imported(value: Any) -> set[str]:
    if isinstance(value, list):
        return set[str]().union(*map(_imported, value))
    if not isinstance(value, dict):
        return set()
    if "Fn::ImportValue" in value:
        return {value["Fn::ImportValue"]}
    return set[str]().union(*map(_imported, value.values()))
