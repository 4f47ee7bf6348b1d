"""Nobody but its own family asks which stack it is, and nobody asks a stack what it can do."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from semcast.sim.families import FAMILIES

ROOT = Path(__file__).parents[2]
SOURCES = [path for top in ("src", "benchmarks") for path in sorted((ROOT / top).rglob("*.py"))]
NAMES = {*FAMILIES.names()}
OUR_OWN = re.compile(r"/families(/|\.py$)|/protocols/")
"""Records of families, and the stacks themselves."""


def named(node: ast.AST) -> Iterator[str]:
    """The stacks that are named in an expression that something is compared with."""
    if isinstance(node, ast.Constant) and node.value in NAMES:
        yield str(node.value)
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        for each in node.elts:
            yield from named(each)


def comparisons(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where names of stacks are compared, also in a `match`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                yield from ((node.lineno, name) for name in named(side))
        elif isinstance(node, ast.MatchValue):
            yield from ((node.lineno, name) for name in named(node.value))


def questions(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where a stack is asked what it is or can do. To assert what is known already is not to ask."""
    asserted = {
        call
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
        for call in ast.walk(node.test)
        if isinstance(call, ast.Call)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node not in asserted:
            asks = node.func.id in ("hasattr", "getattr", "isinstance", "issubclass")
            yield from [(node.lineno, node.func.id)] if asks and is_stack(node.args[0]) else []


def is_stack(node: ast.expr) -> bool:
    """Whether the name of something says that it is a stack."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.strip("_") in ("stack", "former", "protocol")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_stack_is_told_by_its_name_or_its_type(path: Path) -> None:
    where = str(path.relative_to(ROOT))
    tree = ast.parse(path.read_text(encoding="utf8"))
    if not OUR_OWN.search(where):
        assert list(comparisons(tree)) == [], f"{where}: ask the record of the family"
    if "/protocols/" not in where:
        assert list(questions(tree)) == [], f"{where}: give `Stack` a method with a default"


@pytest.mark.parametrize(
    "line",
    [
        'case.stack == "ring"',
        '"vsync" != stack',
        'info.stack in ("s-rm", "reliable")',
        'stack not in ["s-srm"]',
        'match stack:\n    case "ring":\n        pass',
    ],
)
def test_a_comparison_is_found(line: str) -> None:
    assert list(comparisons(ast.parse(line)))


@pytest.mark.parametrize(
    "line",
    ["hasattr(host.stack, 'leave')", "isinstance(self._stack, Ring)", "getattr(stack, 'behind', None)"],
)
def test_a_question_is_found(line: str) -> None:
    assert list(questions(ast.parse(line)))
    assert list(questions(ast.parse(f"assert {line}"))) == []
