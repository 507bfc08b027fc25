"""The documentation is true: references equal the code, every command composes, every link and source name exists."""

from __future__ import annotations

import ast
import re
import runpy
import shlex
from pathlib import Path

import pytest

from gameagent.config import check, compose, expand
from gameagent.learn.metrics import METRICS

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FLAGS = {"-m", "--help", "--cfg", "job"}

by_page = pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))


def test_reference_pages_equal_the_code() -> None:
    pages: dict[str, str] = runpy.run_path(str(ROOT / "docs" / "generate.py"))["pages"]()
    different = [name for name, text in pages.items() if (ROOT / "docs" / name).read_text() != text]
    assert not different, f"{different} differ from the code; type: make conf"


def commands(page: Path) -> list[str]:
    """Every `python run.py …` of a page's bash blocks, without comments."""
    blocks = re.findall(r"^ *```bash\n(.*?)^ *```", page.read_text(), re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [
        " ".join(shlex.split(line, comments=True)[2:]) for line in lines if line.strip().startswith("python run.py")
    ]


def is_ours(command: str) -> bool:
    """Whether it names no file or sweep of the reader's own; those that do are run in tests/config."""
    return "+sweeps=NAME" not in command and ".py" not in command


ALL_COMMANDS = sorted(filter(is_ours, {command for page in PAGES for command in commands(page)}))


@pytest.mark.parametrize("command", ALL_COMMANDS)
def test_every_command_composes(command: str, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words in capitals (RUN) stand for the reader's own: such folders need not exist here."""
    monkeypatch.chdir(repository)
    words = command.split()
    if "--config-path" in words:
        saved = words.index("--config-path")
        words = words[:saved] + words[saved + 4 :]
    overrides = [word for word in words if word not in FLAGS]
    for run in expand(overrides) if "-m" in words else [overrides]:
        check(compose(run))


def names_in(source: Path) -> set[str]:
    tree = ast.walk(ast.parse(source.read_text()))
    return {node.name for node in tree if isinstance(node, ast.ClassDef | ast.FunctionDef)}


@by_page
def test_named_sources_exist(page: Path) -> None:
    """`src/…/`, `src/….py` and `src/….py::name` in a page."""
    for path, name in re.findall(
        r"`((?:src|docs|tests|conf|sweeps|benchmarks)/[\w/.]*)(?:::(\w+))?`", page.read_text()
    ):
        source = ROOT / path
        assert source.exists(), f"{page.name} names {path}"
        assert not name or name in names_in(source), f"{page.name} names {path}::{name}"


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@by_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        linked = (page.parent / target).resolve() if target else page
        assert linked.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(linked), f"{page.name}: {link}"


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "algorithms").glob("*.md")), ids=lambda p: p.stem)
def test_explained_metrics_are_logged_ones(page: Path) -> None:
    rows = [line.split("|")[1] for line in page.read_text().splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert named
    assert named <= METRICS.keys(), f"not in learn/metrics.py: {sorted(named - METRICS.keys())}"
