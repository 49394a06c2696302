"""Completion in a shell, as the function that --show-completion prints asks for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HOOKSAGA = Path(sys.executable).with_name("hooksaga")


@pytest.mark.parametrize(
    ("typed", "found"),
    [("sub", {"subscriptions"}), ("subscriptions pa", {"pause"}), ("events show --js", {"--json"})],
)
def test_commands_and_options_are_completed(typed: str, found: set[str]) -> None:
    words = f"hooksaga {typed}"
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_HOOKSAGA_COMPLETE": "complete_bash"}
    done = subprocess.run([HOOKSAGA], env=os.environ | asked, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == found
