"""The shape of the source: imports point one way, files and functions stay short, every module has a real name."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "gameagent"
FILES = sorted(SOURCE.rglob("*.py"))
LONGEST_FILE = 400
LONGEST_FUNCTION = 40
NO_NAMES = {"common", "helper", "helpers", "misc", "shared", "util", "utils"}

by_file = pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))


def test_imports_point_one_way(repository: Path) -> None:
    linter = [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"]
    done = subprocess.run(linter, cwd=repository, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@by_file
def test_file_is_short(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= LONGEST_FILE, f"{lines} lines; one idea per file: split it"


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from `def` to the end, without the docstring."""
    length = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is None:
        return length
    return length - ((first.end_lineno or first.lineno) - first.lineno + 1)


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@by_file
def test_functions_are_short(path: Path) -> None:
    long = {f.name: n for f in functions(path) if (n := code_lines(f)) > LONGEST_FUNCTION}
    assert not long, f"more than {LONGEST_FUNCTION} lines without the docstring: {long}"


@by_file
def test_module_says_what_it_is(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert not tree.body or ast.get_docstring(tree), "begin with a docstring: what it is, then how to use it"


def test_every_module_has_a_real_name() -> None:
    names = {part for path in FILES for part in path.relative_to(SOURCE).with_suffix("").parts}
    assert not names & NO_NAMES, "name a module after the one thing that it holds"


def test_code_lines_leave_out_the_docstring() -> None:
    documented = ast.parse('def f():\n    """One.\n\n    Two.\n    """\n    return 1\n').body[0]
    bare = ast.parse("def f():\n    return 1\n").body[0]
    assert isinstance(documented, ast.FunctionDef)
    assert isinstance(bare, ast.FunctionDef)
    assert code_lines(documented) == code_lines(bare) == 2
