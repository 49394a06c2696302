"""Runs the CDK for the proof: each command with a log of its own in the run's folder."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from infra.cdk_cli import NoCdk, command, environment
from infra.proof.place import Place
from infra.proof.results import StepFailed

ROOT = Path(__file__).resolve().parents[2]
DEPLOYMENT, RECEIVER = "infra.proof.app", "infra.proof.receiver_app"
SECONDS = 3600
SHOWN = 3000
"""Characters of a failed command's log that are shown."""


@dataclass(frozen=True, slots=True)
class Cdk:
    """`folder`: of the run. Every command raises StepFailed with the end of its log."""

    place: Place
    folder: Path

    def deploy(self, app: str, *, root: Path = ROOT) -> dict[str, str]:
        """Deploy all stacks of an app and return their outputs. `root`: the checkout that is deployed."""
        outputs = self.folder / f"{app}-outputs.json"
        self._run(
            app, "deploy", "--require-approval", "never", "--outputs-file", str(outputs.resolve()), root=root
        )
        stacks: dict[str, dict[str, str]] = json.loads(outputs.read_text(encoding="utf-8"))
        return {name: value for stack in stacks.values() for name, value in stack.items()}

    def destroy(self, app: str) -> None:
        self._run(app, "destroy", "--force")

    def _run(self, app: str, verb: str, *more: str, root: Path = ROOT) -> None:
        log = self.folder / f"{app}-{verb}.log"
        output = self.folder.resolve() / "cdk.out" / app
        words = (verb, "--all", *more, "--app", f"python -m {app}", "--output", str(output))
        chosen = (*self.place.cdk_context, "-c", f"prefix={self.place.prefix}")
        sys.stdout.write(f"  cdk {verb} {app}; its log: {log}\n")
        sys.stdout.flush()
        try:
            with log.open("w", encoding="utf-8") as file:
                done = subprocess.run(
                    [*command(), *words, *chosen, "--progress", "events", "--no-color"],
                    cwd=root,
                    env=_environment(root),
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                    timeout=SECONDS,
                    check=False,
                )
        except (NoCdk, subprocess.TimeoutExpired) as problem:
            raise StepFailed(f"cdk {verb}: {problem}") from problem
        if done.returncode != 0:
            raise StepFailed(f"cdk {verb} failed; the end of {log}:\n{log.read_text('utf-8')[-SHOWN:]}")


def _environment(root: Path) -> dict[str, str]:
    """Import the code of the checkout that is deployed, not of the installed one."""
    return {**environment(), "PYTHONPATH": ":".join(str(root / folder) for folder in ("shared", "cdk", "."))}
