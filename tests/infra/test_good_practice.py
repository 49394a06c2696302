"""AWS's rules of good practice, and the templates' own grammar."""

import json
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")
pytest.importorskip("cfnlint", reason="needs the infra extra: make install-infra")

from aws_cdk import App, Stack, Validations
from aws_cdk import aws_sqs as sqs
from cdk_nag import AwsSolutionsChecks
from cfnlint.config import ConfigMixIn, ManualArgs
from cfnlint.decode.decode import decode_str
from cfnlint.runner import Runner

from tests.infra.deployment import Deployment

NOT_OURS = "W3005"
"""The CDK names a dependency that a reference implies already."""

NOT_OF_AWS = "W3037"
"""An action that only the emulator asks for: see Queues.allow_sending."""


def findings(deployment: Deployment, *ignored: str, region: str = "us-east-1") -> list[str]:
    """Of all templates, with the rules loaded once: that takes as long as most templates do."""
    runner = _runner(ignored, region)
    found: list[str] = []
    for template in deployment.templates:
        decoded, errors = decode_str(json.dumps(template))
        assert decoded is not None, errors
        found += map(str, runner.validate_template(decoded))
    return found


@cache
def _runner(ignored: tuple[str, ...], region: str) -> Runner:
    return Runner(ConfigMixIn(**ManualArgs(ignore_checks=list(ignored), regions=[region])))


def test_the_templates_are_clean(on_aws: Deployment) -> None:
    assert findings(on_aws, NOT_OURS) == []


@pytest.mark.long
def test_the_template_for_an_emulator_is_clean(local: Deployment) -> None:
    assert findings(local, NOT_OURS, NOT_OF_AWS) == []


def test_the_rules_are_enforced_when_we_synthesise(tmp_path: Path) -> None:
    """`dev` and `prod` were synthesised with them: a queue that takes plain HTTP would have stopped that."""
    app = App(outdir=str(tmp_path))
    sqs.Queue(Stack(app, "careless"), "Queue")
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    with pytest.raises(RuntimeError, match="AwsSolutions-SQS4"):
        app.synth()


def test_everything_at_rest_is_encrypted(on_aws: Deployment) -> None:
    assert all(
        one["Properties"]["SqsManagedSseEnabled"] for one in on_aws.of_type("AWS::SQS::Queue").values()
    )
    (database,) = on_aws.of_type("AWS::RDS::DBInstance").values()
    assert database["Properties"]["StorageEncrypted"] is True


def test_queues_and_the_api_refuse_old_or_no_tls(on_aws: Deployment) -> None:
    refused = {
        on_aws.text(queue)
        for one in on_aws.of_type("AWS::SQS::QueuePolicy").values()
        for queue in one["Properties"]["Queues"]
        if '"aws:SecureTransport": "false"' in json.dumps(one)
    }
    assert refused == set(on_aws.of_type("AWS::SQS::Queue"))
    (api,) = on_aws.of_type("AWS::ApiGateway::RestApi").values()
    assert api["Properties"]["SecurityPolicy"].startswith("SecurityPolicy_TLS13_1_2")
    (parameters,) = on_aws.of_type("AWS::RDS::DBParameterGroup").values()
    assert parameters["Properties"]["Parameters"]["rds.force_ssl"] == "1"


def test_logs_end(anywhere: Deployment) -> None:
    groups = anywhere.of_type("AWS::Logs::LogGroup")
    assert len(groups) >= len(anywhere.functions)
    assert all("RetentionInDays" in one["Properties"] for one in groups.values())


def test_prod_keeps_what_it_holds(prod: Deployment) -> None:
    (database,) = prod.of_type("AWS::RDS::DBInstance").values()
    assert database["DeletionPolicy"] == "Snapshot"
    assert database["Properties"]["DeletionProtection"] is True
    assert database["Properties"]["BackupRetentionPeriod"] >= 7
    (key,) = prod.of_type("AWS::SecretsManager::Secret").values()
    assert key["UpdateReplacePolicy"] == "Retain"


def test_a_first_deployment_that_fails_leaves_no_name_taken(on_aws: Deployment) -> None:
    """A retained resource with a fixed name could not be created again."""
    assert not [one for one in on_aws.resources.values() if one.get("DeletionPolicy") == "Retain"]


def test_prod_keeps_its_key_once_it_has_been_deployed(prod: Deployment) -> None:
    (key,) = prod.of_type("AWS::SecretsManager::Secret").values()
    assert key["DeletionPolicy"] == "RetainExceptOnCreate"


def test_the_databases_log_holds_no_payloads(on_aws: Deployment) -> None:
    (parameters,) = on_aws.of_type("AWS::RDS::DBParameterGroup").values()
    assert parameters["Properties"]["Parameters"]["log_parameter_max_length"] == "0"


@pytest.mark.parametrize("kind", ["AWS::EC2::", "AWS::RDS::", "AWS::WAFv2::"])
def test_an_emulator_is_asked_for_nothing_it_cannot_do(local: Deployment, kind: str) -> None:
    assert not [one for one in local.resources.values() if one["Type"].startswith(kind)]


def test_no_alarm_of_an_emulator_computes_its_metric(local: Deployment) -> None:
    alarms = local.of_type("AWS::CloudWatch::Alarm").values()
    assert alarms
    assert not [one for one in alarms if "Metrics" in one["Properties"]]
