"""The wheel, installed into an empty environment, works outside of any checkout."""

import json
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import uv

from tests.api.running_system import wait_until
from tests.wheel.archives import ROOT, only
from tests.wheel.outside import run, variables

pytestmark = [pytest.mark.dist, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """The folder in which commands run, outside of any checkout. The account of the database may pass through it."""
    folder = Path(tempfile.mkdtemp(prefix="hooksaga-outside-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def installed(archives: Path, place: Path) -> Path:
    """The folder with the `hooksaga` command."""
    environment = place / "environment"
    run(uv.find_uv_bin(), "venv", "--quiet", "--python", sys.executable, str(environment))
    run(
        *(uv.find_uv_bin(), "pip", "install", "--quiet", "--python", str(environment / "bin" / "python")),
        *("--constraints", str(ROOT / "constraints.txt"), str(only(archives, "hooksaga-*.whl"))),
    )
    return environment / "bin"


def test_one_name_is_importable(installed: Path, place: Path) -> None:
    names = "('hooksaga', 'shared', 'functions', 'hooksaga_cdk', 'infra')"
    code = f"import importlib.util as u; print([n for n in {names} if u.find_spec(n)])"
    assert run(str(installed / "python"), "-c", code, cwd=place, env=variables(place)) == "['hooksaga']\n"


def test_the_demo_runs(installed: Path, place: Path) -> None:
    said = run(str(installed / "hooksaga"), "demo", cwd=place, env=variables(place))
    assert "Every delivery ended as it should" in said


def test_uvx_runs_the_demo(archives: Path, place: Path) -> None:
    command = [uv.find_uv_bin(), "tool", "run", "--quiet", "--python", sys.executable]
    command += [
        "--constraints",
        str(ROOT / "constraints.txt"),
        "--from",
        str(only(archives, "hooksaga-*.whl")),
    ]
    assert "Every delivery ended as it should" in run(
        *command, "hooksaga", "demo", cwd=place, env=variables(place)
    )


@pytest.fixture
def base_url(installed: Path, place: Path) -> Iterator[str]:
    """Of `hooksaga up`, on a port that it chose."""
    log = place / "up.log"
    data = place / "data"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [installed / "hooksaga", "up", "--port", "0"],
            cwd=place,
            env=variables(place, HOOKSAGA_DATA_DIR=str(data)),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        words = wait_until(
            lambda: [word for word in log.read_text().split() if word.startswith("http://127.0.0.1:")],
            "it says where it listens",
            60,
        )
        yield words[0].rstrip(".,").split("/console")[0]
    finally:
        process.terminate()
        process.wait(30)


def test_up_takes_an_event(base_url: str, place: Path) -> None:
    request = urllib.request.Request(
        f"{base_url}/v1/events",
        data=json.dumps({"event_type": "order.created", "payload": {"total": 1}}).encode(),
        headers={
            "Authorization": f"Bearer {(place / 'data' / 'api_key').read_text().strip()}",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert answer.status == 202
    with urllib.request.urlopen(f"{base_url}/v1/docs", timeout=20) as page:
        assert page.status == 200
