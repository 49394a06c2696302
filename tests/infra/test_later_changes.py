"""Changes of an existing deployment."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from hooksaga.aws.deployment import ENVIRONMENTS, Nat
from tests.infra.conftest import changed_dev
from tests.infra.deployment import Deployment


def test_each_way_out_has_an_address_of_its_own(dev: Deployment, tmp_path: Path) -> None:
    """A gateway cannot be made with the address that an instance still has."""
    changed = changed_dev(tmp_path / "changed", replace(ENVIRONMENTS["dev"], nat=Nat.GATEWAY))
    assert len(changed.of_type("AWS::EC2::NatGateway")) == 1
    assert not set(dev.of_type("AWS::EC2::EIP")) & set(changed.of_type("AWS::EC2::EIP"))


def test_a_proxy_replaces_neither_the_database_nor_a_function(dev: Deployment, tmp_path: Path) -> None:
    wanted = ENVIRONMENTS["dev"]
    changed = changed_dev(
        tmp_path / "changed", replace(wanted, database=replace(wanted.database, proxy=True))
    )
    assert len(changed.of_type("AWS::RDS::DBProxy")) == 1
    assert changed.of_type("AWS::RDS::DBInstance") == dev.of_type("AWS::RDS::DBInstance")
    assert set(changed.of_type("AWS::Lambda::Function")) == set(dev.of_type("AWS::Lambda::Function"))
