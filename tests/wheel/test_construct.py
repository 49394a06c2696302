"""Both wheels, installed into an empty environment: an app outside of any checkout is synthesised, with its bundles."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import uv

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from hooksaga.aws.deployment import ENVIRONMENTS
from hooksaga_cdk.bundling import ARM, CERTIFICATES, digest_of
from infra.node import use_current_node
from tests.infra.deployment import Deployment
from tests.infra.test_good_practice import NOT_OURS, findings
from tests.wheel.archives import ROOT, only
from tests.wheel.outside import run, variables

pytestmark = [pytest.mark.dist, pytest.mark.timeout(600)]

PAGE = ROOT / "docs" / "deploy.md"


@pytest.fixture(scope="module")
def python(archives: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with both wheels, and no other name of this repository."""
    environment = tmp_path_factory.mktemp("environment") / "venv"
    run(uv.find_uv_bin(), "venv", "--quiet", "--python", sys.executable, str(environment))
    wheels = [only(archives, f"{name}-*.whl") for name in ("hooksaga", "hooksaga_cdk")]
    python = environment / "bin" / "python"
    run(
        *(uv.find_uv_bin(), "pip", "install", "--quiet", "--python", str(python)),
        *(
            "--constraints",
            str(ROOT / "constraints.txt"),
            *(f"{wheel}[aws]" for wheel in wheels[:1]),
            str(wheels[1]),
        ),
    )
    return python


@pytest.fixture(scope="module")
def synthesised(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of the app of docs/deploy.md."""
    folder = tmp_path_factory.mktemp("app")
    (folder / "app.py").write_text(app_of_page())
    given = outside(folder, CDK_OUTDIR=str(folder / "cdk.out"))
    done = subprocess.run(
        [python, "app.py"], cwd=folder, env=given, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "cdk.out"


def outside(folder: Path, **more: str) -> dict[str, str]:
    """Variables of a command outside of the checkout, with the Node of this environment for the CDK."""
    use_current_node()
    node = {"JSII_NODE": os.environ["JSII_NODE"]} if "JSII_NODE" in os.environ else {}
    return variables(folder, **node, **more)


def app_of_page() -> str:
    """The first Python block of the page."""
    source = PAGE.read_text(encoding="utf-8").split("```python\n", 1)[1].split("```", 1)[0]
    assert len(source.splitlines()) <= 15
    return source


def test_only_the_packages_themselves_are_importable(python: Path, tmp_path: Path) -> None:
    names = "('hooksaga', 'hooksaga_cdk', 'shared', 'functions', 'infra')"
    code = f"import importlib.util as u; print([n for n in {names} if u.find_spec(n)])"
    said = run(str(python), "-c", code, cwd=tmp_path, env=variables(tmp_path))
    assert said == "['hooksaga', 'hooksaga_cdk']\n"


def test_the_template_is_clean(synthesised: Path) -> None:
    deployment = Deployment.read(synthesised)
    assert set(deployment.functions) == set(ENVIRONMENTS["dev"].functions)
    assert findings(deployment, NOT_OURS) == []


@pytest.fixture(scope="module")
def digests(python: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Digests of the bundles, as computed from what is installed."""
    folder = tmp_path_factory.mktemp("digests")
    source = (
        "import json, sys\n"
        "from hooksaga_cdk.bundling import ARM, CERTIFICATES, digest_of\n"
        "print(json.dumps({name: digest_of(name, ARM) for name in sys.argv[1:]}))"
    )
    names = list(ENVIRONMENTS["dev"].functions)
    return json.loads(run(str(python), "-c", source, *names, cwd=folder, env=outside(folder)))


@pytest.mark.parametrize("function", ENVIRONMENTS["dev"].functions)
def test_bundles_are_those_of_a_checkout(synthesised: Path, digests: dict[str, str], function: str) -> None:
    """The digest is computed from all that a bundle is built from."""
    assert digests[function] == digest_of(function, ARM)
    bundle = bundle_of(synthesised, function)
    assert (bundle / "functions" / function / "handler.py").is_file()
    assert (bundle / "hooksaga" / "runtime" / "settings.py").is_file()
    assert (bundle / "psycopg").is_dir()
    assert (bundle / CERTIFICATES.name).read_bytes() == CERTIFICATES.read_bytes()


def bundle_of(synthesised: Path, function: str) -> Path:
    """The folder of the asset that the template names as the function's code."""
    key = Deployment.read(synthesised).functions[function]["Code"]["S3Key"]
    return synthesised / f"asset.{key.removesuffix('.zip')}"


def test_a_refused_setting_is_one_line_for_the_user(python: Path, tmp_path: Path) -> None:
    source = app_of_page().replace("log_days=30", "log_days=45, zones=1")
    (tmp_path / "app.py").write_text(source)
    done = subprocess.run(
        [python, "app.py"],
        cwd=tmp_path,
        env=outside(tmp_path),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 1
    assert "dev: log_days is 45: CloudWatch Logs allows" in done.stderr
    assert "dev: zones is 1: 2 to 6" in done.stderr
    assert json.dumps(done.stdout) == '""'
