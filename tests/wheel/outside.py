"""Commands outside of any checkout, without this process's settings."""

import os
import subprocess
from pathlib import Path

INSTALL_SECONDS = 240


def variables(place: Path, **more: str) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("HOOKSAGA_", "PYTHON"))},
        "HOME": str(place),
        **more,
    }


def run(*command: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout
