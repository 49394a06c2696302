"""A file of the product has at most 300 lines, a function at most 50; the message names what is longer."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("shared/hooksaga", "functions", "cdk", "infra", "bench", "docs/generators")
MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 50


def too_long(name: str, source: str) -> Iterator[str]:
    """The file, and its functions, each with its number of lines."""
    if (lines := len(source.splitlines())) > MAX_FILE_LINES:
        yield f"{name}: {lines} lines"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            if (lines := node.end_lineno - node.lineno + 1) > MAX_FUNCTION_LINES:
                yield f"{name}:{node.lineno} {node.name}: {lines} lines"


def test_no_file_and_no_function_is_too_long() -> None:
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(files) > 250
    assert [
        line for path in files for line in too_long(str(path.relative_to(ROOT)), path.read_text("utf-8"))
    ] == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("x = 1\n" * 300, []),
        ("x = 1\n" * 301, ["planted.py: 301 lines"]),
        ("def f():\n" + "    x = 1\n" * 49, []),
        ("x = 1\ndef f():\n" + "    x = 1\n" * 50, ["planted.py:2 f: 51 lines"]),
        ("class A:\n  async def f(self):\n" + "    x = 1\n" * 50, ["planted.py:2 f: 51 lines"]),
    ],
)
def test_a_planted_one_is_named(source: str, found: list[str]) -> None:
    assert list(too_long("planted.py", source)) == found
