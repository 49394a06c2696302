"""Writes docs/openapi.json from the API's own description: `python -m docs.generators.openapi_file`."""

import json
from pathlib import Path

from hooksaga.api.openapi import openapi_document

OPENAPI_FILE = Path(__file__).resolve().parents[1] / "openapi.json"


def openapi_text() -> str:
    """The file's content."""
    return json.dumps(openapi_document(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    OPENAPI_FILE.write_text(openapi_text(), encoding="utf-8")
