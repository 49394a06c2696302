"""Plain templates, and their assets beside them: complete without a bootstrapped account, and deployed as they are."""

import asyncio
import gc
import json
import os
import re
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from hooksaga.aws.deployment import LOCAL
from hooksaga.local.tls import ensure_certificates
from infra.templates import BUCKET, write
from tests.infra.conftest import NO_BUNDLES
from tests.infra.deployment import Deployment
from tests.infra.local_deployment.deployment import deliver_one, emulated_stack
from tests.infra.local_deployment.stack import LocalStack
from tests.infra.test_good_practice import NOT_OURS, findings

DEPLOY_SECONDS = 400


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of dev, with handlers in place of bundles."""
    folder = tmp_path_factory.mktemp("templates")
    write(folder, {**NO_BUNDLES, "env": "dev"})
    return folder


def test_every_asset_of_the_template_is_in_the_folder(written: Path) -> None:
    template = json.loads((written / "hooksaga-dev.template.json").read_text())
    keys = set()
    for one in template["Resources"].values():
        if one["Type"] == "AWS::Lambda::Function":
            code = one["Properties"]["Code"]
            assert code["S3Bucket"] == {"Fn::Sub": f"${{{BUCKET}}}"}
            keys.add(code["S3Key"])
    assert keys == {path.name for path in (written / "assets").iterdir()}
    assert len(keys) > 10
    for path in (written / "assets").iterdir():
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None


def test_the_template_needs_no_bootstrapped_account(written: Path) -> None:
    text = (written / "hooksaga-dev.template.json").read_text()
    assert "cdk-hnb659fds" not in text
    assert "BootstrapVersion" not in text
    assert json.loads(text)["Parameters"][BUCKET]["Type"] == "String"


@pytest.mark.long
def test_the_template_is_clean(written: Path) -> None:
    assert findings(Deployment.read(written), NOT_OURS) == []


def test_the_readme_names_what_is_there(written: Path) -> None:
    text = (written / "README.md").read_text()
    assert "{" not in text.replace("{template}", "")
    for name in re.findall(r"--template-file (\S+)", text):
        assert (written / name).is_file()
    assert f"--parameter-overrides {BUCKET}=BUCKET" in text


@pytest.mark.long
def test_the_same_sources_give_the_same_files(written: Path, tmp_path: Path) -> None:
    write(tmp_path, {**NO_BUNDLES, "env": "dev"})
    files = {path.relative_to(written): path.read_bytes() for path in written.rglob("*") if path.is_file()}
    again = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert again == files


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalStack]:
    with emulated_stack() as stack:
        for name, value in stack.variables.items():
            monkeypatch.setenv(name, value)
        yield stack


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_plain_template_is_deployed_and_delivers(place: LocalStack, tmp_path: Path) -> None:
    template = write(tmp_path, {"target": "local", "python": place.python})
    outputs = deploy(place, template)
    certificates = ensure_certificates(place.work_dir)
    event = asyncio.run(deliver_one(place, place.api_url(outputs), certificates))
    gc.collect()  # the deployed function keeps its connection to the receiver, whose end is warned about
    assert [attempt["response_status"] for attempt in event["sagas"][0]["attempts"]] == [200]


def deploy(place: LocalStack, template: Path) -> dict[str, str]:
    """Do what the commands of the README do, and return the outputs. The template is too large for a request."""
    bucket = f"assets-{os.getpid()}"
    s3: Any = place.client("s3")
    s3.create_bucket(Bucket=bucket)
    for path in (template, *(template.parent / "assets").iterdir()):
        s3.upload_file(str(path), bucket, path.name)
    cloudformation: Any = place.client("cloudformation")
    cloudformation.create_stack(
        StackName=LOCAL.prefix,
        TemplateURL=f"{place.endpoint}/{bucket}/{template.name}",
        Parameters=[{"ParameterKey": BUCKET, "ParameterValue": bucket}],
        Capabilities=["CAPABILITY_IAM"],
    )
    deadline = time.monotonic() + DEPLOY_SECONDS
    while (stack := cloudformation.describe_stacks(StackName=LOCAL.prefix)["Stacks"][0])["StackStatus"] in (
        "CREATE_IN_PROGRESS",
        "REVIEW_IN_PROGRESS",
    ):
        assert time.monotonic() < deadline, stack
        time.sleep(1)
    assert stack["StackStatus"] == "CREATE_COMPLETE", stack
    return {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}
