"""`make install` installs all that one machine needs. The tests have everything, so they hide the rest."""

import subprocess
import sys
from pathlib import Path

import pytest

HIDDEN = """
import sys
for name in (
    *("boto3", "botocore", "aws_cdk", "constructs", "cdk_nag", "awslambdaric", "ministack", "playwright", "dnslib"),
):
    sys.modules[name] = None
from hooksaga.cli.app import main
sys.argv = ["hooksaga", *sys.argv[1:]]
main()
"""


def hooksaga(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, as it is without any extra."""
    return subprocess.run(
        [sys.executable, "-c", HIDDEN, *arguments],
        env={"HOOKSAGA_DATA_DIR": str(folder), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path.cwd())},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_doctor_looks_at_one_machine(tmp_path: Path) -> None:
    done = hooksaga(tmp_path, "doctor")
    assert "Traceback" not in done.stderr, done.stderr
    assert "polling mode needs no queues" in done.stdout


@pytest.mark.parametrize(
    "command", ["doctor", "audit", "prune --older-than 30d", "keys list", "secrets reseal"]
)
def test_a_command_for_aws_says_what_it_needs(tmp_path: Path, command: str) -> None:
    done = hooksaga(tmp_path, *command.split(), "--stack", "hooksaga-dev")
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'hooksaga[aws]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
