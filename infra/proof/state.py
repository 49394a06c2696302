"""What a run remembers in its folder, so that it can go on after an interruption.

The file holds an API key of the deployment, so only its owner can read it.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

from infra.proof.results import Result

FILE = "state.json"


class State:
    """Values by name, and the results of steps. Every change is on disk when the call returns."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path = folder / FILE
        self._content: dict[str, Any] = {"values": {}, "results": {}, "calls": {}}
        if self._path.exists():
            self._content = json.loads(self._path.read_text(encoding="utf-8"))

    def __getitem__(self, name: str) -> Any:
        return self._content["values"][name]

    def get(self, name: str, default: Any = None) -> Any:
        return self._content["values"].get(name, default)

    def set(self, **values: Any) -> None:
        self._content["values"].update(values)
        self._write()

    def note(self, result: Result, calls: dict[str, int]) -> None:
        """Store the result of a step in place of an earlier one, and add the calls that were made."""
        self._content["results"].pop(result.step, None)  # the newest is the last
        self._content["results"][result.step] = result.content()
        known: dict[str, int] = self._content["calls"]
        for name, many in calls.items():
            known[name] = known.get(name, 0) + many
        self._write()

    def clear(self) -> None:
        """Forget an earlier run. Its files stay until they are overwritten."""
        self._content = {"values": {"started": time.time()}, "results": {}, "calls": {}}
        self._write()

    @property
    def results(self) -> dict[str, Result]:
        return {name: Result.read(content) for name, content in self._content["results"].items()}

    @property
    def calls(self) -> dict[str, int]:
        return dict(self._content["calls"])

    def _write(self) -> None:
        draft = self._path.with_suffix(".new")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(self._content, file, indent=1)
        draft.replace(self._path)
