"""The templates of `make aws-proof` for an account: hooksaga's own stacks under another name, and the receiver."""

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from hooksaga.aws.deployment import ENVIRONMENTS
from infra.proof.calls import CALLS
from infra.proof.place import proof_environment
from infra.proof.stacks import RECEIVER
from tests.infra.conftest import NO_BUNDLES
from tests.infra.deployment import Deployment


@pytest.fixture(scope="module", params=sorted(ENVIRONMENTS))
def proof(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """Both apps, with the settings of one environment."""
    from aws_cdk import App

    from infra.app import build_on_aws
    from infra.proof.receiver_app import ReceiverStack

    folder = tmp_path_factory.mktemp("proof")
    app = App(outdir=str(folder), context=NO_BUNDLES)
    env = proof_environment(request.param)
    build_on_aws(app, env)
    app.synth()
    app = App(outdir=str(folder / "receiver"))
    ReceiverStack(app, env.prefix)
    app.synth()
    return Deployment([*Deployment.read(folder).templates, *Deployment.read(folder / "receiver").templates])


def test_the_database_fails_over_and_is_deleted(proof: Deployment) -> None:
    (instance,) = proof.of_type("AWS::RDS::DBInstance").values()
    assert (instance["Properties"]["MultiAZ"], instance["Properties"]["DeletionProtection"]) == (True, False)
    assert instance["DeletionPolicy"] == "Delete"


def test_nothing_is_kept_but_the_role_of_the_account(proof: Deployment) -> None:
    kept = {
        one["Type"] for one in proof.resources.values() if one.get("DeletionPolicy") in ("Retain", "Snapshot")
    }
    assert kept <= {"AWS::IAM::Role", "AWS::ApiGateway::Account"}


def test_every_name_is_one_that_the_policy_and_the_search_know(proof: Deployment) -> None:
    names = [
        one["Properties"][field]
        for one in proof.resources.values()
        for field in ("FunctionName", "QueueName", "TableName", "TopicName", "AlarmName", "Name")
        if isinstance(one.get("Properties", {}).get(field), str) and one["Type"] in NAMED
    ]
    assert len(names) > 50
    assert [name for name in names if not name.startswith("hooksaga-proof")] == []
    assert f"table/{{prefix}}-{RECEIVER}" in " ".join(call.resource for call in CALLS)


NAMED = {
    "AWS::Lambda::Function",
    "AWS::SQS::Queue",
    "AWS::DynamoDB::Table",
    "AWS::SNS::Topic",
    "AWS::CloudWatch::Alarm",
    "AWS::Events::Rule",
}


def test_anybody_may_call_the_receivers_url_and_only_its_url(proof: Deployment) -> None:
    (url,) = proof.of_type("AWS::Lambda::Url").values()
    assert url["Properties"]["AuthType"] == "NONE"
    public = [
        one["Properties"]
        for one in proof.of_type("AWS::Lambda::Permission").values()
        if one["Properties"]["Principal"] == "*"
    ]
    assert {one["Action"] for one in public} == {"lambda:InvokeFunctionUrl", "lambda:InvokeFunction"}
    for one in public:
        by_url = one.get("InvokedViaFunctionUrl") is True or one.get("FunctionUrlAuthType") == "NONE"
        assert by_url, one
