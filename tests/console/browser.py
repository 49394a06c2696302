"""Chromium from the system's packages, driven by Playwright; where there is none, the tests say so and are skipped."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WORDS = "no browser: install Debian's package `chromium`, or name one in HOOKSAGA_BROWSER"


def browser_path() -> Path | None:
    """The browser that HOOKSAGA_BROWSER names, or the first one on the PATH."""
    named = os.environ.get("HOOKSAGA_BROWSER")
    found = named or next(filter(None, (shutil.which(name) for name in NAMES)), None)
    return Path(found) if found else None


needs_a_browser = pytest.mark.skipif(browser_path() is None, reason=WORDS)


@contextmanager
def launched() -> Iterator["Browser"]:
    """A browser without a window. Started as root, as in CI, it cannot use its own sandbox."""
    from playwright.sync_api import sync_playwright

    path = browser_path()
    assert path is not None, WORDS
    with sync_playwright() as playwright:
        sandbox = [] if os.geteuid() else ["--no-sandbox"]
        browser = playwright.chromium.launch(
            executable_path=path, headless=True, args=[*sandbox, "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()
