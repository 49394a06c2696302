"""The wheels and sdists of both packages: those of HOOKSAGA_DIST, or built for the tests."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def build(folder: Path) -> Path:
    """The folder with the archives in it."""
    if given := os.environ.get("HOOKSAGA_DIST"):
        return ROOT / given
    for project in (ROOT, ROOT / "cdk"):
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(project)]
        subprocess.run(command, check=True, capture_output=True, timeout=100)
    return folder


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


@cache
def tracked(folder: str) -> frozenset[str]:
    """The files below a folder that git knows, by their path below it."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", folder]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=20)
    paths = [name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]
    return frozenset(str(Path(name).relative_to(folder)) for name in paths)
