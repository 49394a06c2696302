"""The import contracts of pyproject.toml catch what they are for: each is tried with a violation planted in a copy."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 100

PLANTED = {
    "shared/hooksaga/utils.py": "",
    "shared/hooksaga/core/planted_clock.py": "import time",
    "shared/hooksaga/core/planted_dice.py": "import random",
    "shared/hooksaga/core/planted_os.py": "import os",
    "shared/hooksaga/core/planted_log.py": "import logging",
    "shared/hooksaga/client/planted_beside.py": "from hooksaga.core import errors",
    "shared/hooksaga/core/planted_beside.py": "from hooksaga.client import events",
    "shared/hooksaga/core/planted_up.py": "def f():\n    from hooksaga.adapters import queries",
    "shared/hooksaga/stages/planted_up.py": "def f():\n    from hooksaga.operations import audit",
    "shared/hooksaga/operations/planted_up.py": "def f():\n    from hooksaga.api import app",
    "shared/hooksaga/aws/planted_beside.py": "from hooksaga.worker import polling",
    "shared/hooksaga/doctor/planted_up.py": "def f():\n    from hooksaga.cli import terminal",
    "shared/hooksaga/local/planted_functions.py": "from functions.router import handler",
    "shared/hooksaga/stages/planted_psycopg.py": "import psycopg",
    "shared/hooksaga/worker/planted_boto3.py": "import boto3",
    "shared/hooksaga/stages/planted_parser.py": "import httptools",
    "shared/hooksaga/aws/planted_cdk.py": "import aws_cdk",
    "shared/hooksaga/aws/planted_construct.py": "import hooksaga_cdk",
    "cdk/hooksaga_cdk/planted_up.py": "from infra import app",
    "cdk/hooksaga_cdk/planted_psycopg.py": "import psycopg",
    "shared/hooksaga/worker/planted_powertools.py": "import aws_lambda_powertools",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the output of lint-imports on a copy of the code, without line breaks."""
    folder = tmp_path_factory.mktemp("planted")
    for name in ("shared", "functions", "cdk", "infra"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name, source in PLANTED.items():
        (folder / name).write_text(f"{source}\n")
    paths = os.pathsep.join([str(folder / "shared"), str(folder / "cdk"), str(folder)])
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_violation_is_named(found: str, name: str) -> None:
    module = ".".join(Path(name).with_suffix("").parts).removeprefix("shared.").removeprefix("cdk.")
    assert f"{module} " in found or f"{module}\n" in found, found[-3000:]
