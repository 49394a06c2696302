"""No test passes because its loops have nothing to go through: one that asserts only in loops says that they do."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_WRAPPERS = ("enumerate", "sorted", "reversed", "set", "list", "tuple", "zip", "product")

Test = ast.FunctionDef | ast.AsyncFunctionDef


def checks_of(node: ast.AST, loops: tuple[ast.AST, ...] = ()) -> Iterator[tuple[ast.AST, ...]]:
    """The loops around each check below a node."""
    for child in ast.iter_child_nodes(node):
        if _is_check(child):
            yield loops
        yield from checks_of(child, (*loops, child) if isinstance(child, _LOOPS) else loops)


def _is_check(node: ast.AST) -> bool:
    match node:
        case ast.Assert():
            return True
        case ast.With() | ast.AsyncWith():
            return any(_name_called(item.context_expr) in ("raises", "warns") for item in node.items)
        case ast.Call():
            return _name_called(node).startswith("assert_")
        case _:
            return False


def _name_called(node: ast.AST) -> str:
    return ast.unparse(node.func).split(".")[-1] if isinstance(node, ast.Call) else ""


def has_something(node: ast.AST, known: dict[str, ast.expr]) -> bool:
    """Whether it is certain from the text alone that there is something to go through. known: names with one value."""
    match node:
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return any(
                has_something(one.value, known) if isinstance(one, ast.Starred) else True for one in elements
            )
        case ast.Dict(keys=keys):
            return bool(keys)
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int(count))]):
            return count > 0
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in _WRAPPERS and arguments:
            return all(has_something(one, known) for one in arguments)
        case ast.Call(func=ast.Attribute(value=value, attr="items" | "values" | "keys")):
            return has_something(value, known)
        case ast.Name(id=name) if name in known:
            return has_something(known[name], {key: known[key] for key in known.keys() - {name}})
        case _:
            return False


def _goes_through(loop: ast.AST, known: dict[str, ast.expr]) -> bool:
    return isinstance(loop, ast.For | ast.AsyncFor) and has_something(loop.iter, known)


def values_of_names(*places: ast.AST) -> dict[str, ast.expr]:
    """Return the values of names that are assigned once."""
    given: dict[str, list[ast.expr]] = {}
    for place in places:
        for node in ast.walk(place):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    given.setdefault(name, []).append(value)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    given.setdefault(name, []).append(value)
                case _:
                    pass
    return {name: values[0] for name, values in given.items() if len(values) == 1}


def empty_loops(source: str) -> list[str]:
    """The tests of a file that check something only inside of loops, where one of them may have nothing to do."""
    module = ast.parse(source)
    constants = ast.Module([one for one in module.body if isinstance(one, ast.Assign | ast.AnnAssign)], [])
    found: list[str] = []
    for test in ast.walk(module):
        if not isinstance(test, Test) or not test.name.startswith("test_"):
            continue
        checks = list(checks_of(test))
        known = values_of_names(constants, test)
        if (
            checks
            and () not in checks
            and not all(_goes_through(loop, known) for loops in checks for loop in loops)
        ):
            found.append(test.name)
    return found


def test_no_test_passes_because_a_loop_is_empty() -> None:
    """Otherwise: assert before the loop, or behind it, that there was something."""
    files = sorted(TESTS.rglob("test_*.py"))
    assert len(files) > 100
    found = [
        f"{file.relative_to(TESTS)}::{name}"
        for file in files
        for name in empty_loops(file.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        ("for one in many():\n  assert one", True),
        ("for one in many():\n  with pytest.raises(E):\n   f(one)", True),
        ("while waits():\n  assert one", True),
        ("for one in ():\n  assert one", True),
        ("for one in (*many,):\n  assert one", True),
        ("for one in range(0):\n  assert one", True),
        ("for one in MANY:\n  assert one", True),
        ("for one in (1, 2):\n  assert one", False),
        ("for one in enumerate((None, 1), start=2):\n  assert one", False),
        ("for one in range(5):\n  for two in many():\n    assert two", True),
        ("for one in range(5):\n  assert many()\n  for two in many():\n    assert two", True),
        ("for one in FEW.items():\n  assert one", False),
        ("few = [1]\n for one in few:\n  assert one", False),
        ("all_of_them = many()\n assert all_of_them\n for one in all_of_them:\n  assert one", False),
        ("for one in many():\n  f(one)", False),
    ],
)
def test_a_loop_that_may_be_empty_is_found(body: str, is_found: bool) -> None:
    source = f"FEW = {{1: 2}}\nMANY = many()\ndef test_it():\n {body}\n"
    assert empty_loops(source) == (["test_it"] if is_found else [])
