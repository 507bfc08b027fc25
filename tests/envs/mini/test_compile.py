"""Compiled games: the same as uncompiled, never stale, safe for two processes, readable when numba gives up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.envs.toys import SLIM, WALK

import gameagent.envs.mini.compile as compiling
from gameagent.envs.mini.compile import compile_game
from gameagent.envs.mini.env import MiniEnv
from gameagent.envs.mini.game import GameError, load_game

PLAY = """
import hashlib, sys, warnings
warnings.simplefilter("error")
import numpy as np
from gameagent.envs.mini.env import MiniEnv
digest = hashlib.sha256()
env = MiniEnv(game=sys.argv[1], obs="both", sticky=0.2, frame_skip=2).make(3, 0)
obs, _ = env.reset(seed=0)
rng = np.random.default_rng(0)
for t in range(int(sys.argv[2])):
    obs, reward, terminated, truncated, info = env.step(rng.integers(0, env.actions.n, 3))
    for part in (obs["frame"], obs["features"], reward, terminated, truncated, env.expert()):
        digest.update(part.tobytes())
digest.update(repr(env.get_state()).encode())
print(digest.hexdigest())
"""


def play(game: str, cache: Path, steps: int = 60, **variables: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "GAMEAGENT_CACHE": str(cache), **variables}
    command = [sys.executable, "-c", PLAY, game, str(steps)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def result(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


@pytest.fixture
def walk(tmp_path: Path) -> Path:
    path = tmp_path / "walk.py"
    path.write_text(WALK)
    return path


def test_compiled_and_uncompiled_games_agree_to_the_last_bit(walk: Path, tmp_path: Path) -> None:
    for game, steps in ((str(walk), 60), ("catch", 12)):
        compiled = result(play(game, tmp_path / "cache", steps))
        assert compiled == result(play(game, tmp_path / "cache", steps, NUMBA_DISABLE_JIT="1"))


def test_two_processes_may_compile_at_once_and_a_third_finds_the_cache(walk: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    both = [play(str(walk), cache) for _ in range(2)]
    assert result(both[0]) == result(both[1])
    [folder] = (cache / "kernels").iterdir()
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*.nb?")}
    assert before
    result(play(str(walk), cache))
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*.nb?")} == before


def test_a_change_in_a_helper_file_is_noticed(walk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAMEAGENT_CACHE", str(tmp_path / "cache"))
    walk.write_text("from helper import luck\n" + SLIM.replace("s.x / 3.0", "luck(s.x)"))
    for value in (5.0, 6.0):
        (tmp_path / "helper.py").write_text(f"def luck(x):\n    return {value} + 0.0 * x\n")
        env = MiniEnv(game=str(walk)).make(1, 0)
        env.reset()
        assert env.core.context()["luck"][0] == value


def test_an_unwritable_cache_warns_and_compiles_all_the_same(
    walk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    walk.write_text(SLIM)
    monkeypatch.setenv("GAMEAGENT_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(compiling, "_COMPILED", {})
    with pytest.warns(UserWarning, match="GAMEAGENT_CACHE"):
        env = MiniEnv(game=str(walk), obs="features").make(2, 0)
    assert env.reset()[0].shape == (2, 2)


@pytest.mark.parametrize(
    ("line", "instead", "hook", "where"),
    [
        ("    fill(img, (10, 20, 30))", "    fill(img, 10)", "render", "fill(img, 10)"),
        ("    s.steps += 1", "    s.steps += {}['a']", "step", "s.steps += {}['a']"),
        ("    return 3 if s.x < 10.0 else 0", "    return print(s, file=3)", "expert", "print(s, file=3)"),
    ],
)
def test_what_numba_cannot_compile_is_shown_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, instead: str, hook: str, where: str
) -> None:
    assert line in WALK
    monkeypatch.setenv("GAMEAGENT_CACHE", str(tmp_path / "cache"))
    text = WALK.replace(line, instead, 1)
    path = tmp_path / "walk.py"
    path.write_text(text)
    number = next(i for i, row in enumerate(text.splitlines(), 1) if where in row)
    with pytest.raises(GameError) as error:
        compile_game(load_game(str(path)))
    message = str(error.value)
    assert message.startswith(f"walk.py, line {number}: numba cannot compile the hook '{hook}'"), message
    assert where in message
    assert "NUMBA_DISABLE_JIT" in message
    assert "\x1b" not in message


@pytest.mark.parametrize(
    ("line", "instead", "name"),
    [
        ("    s.x = 10.0 * uniform(rng)", "    s.y = 10.0", "y"),
        ("    out.score = s.steps", "    out.points = s.steps", "points"),
        ("    return s.steps >= cfg.limit", "    return s.steps >= cfg.limits", "limits"),
    ],
)
def test_an_unknown_field_is_shown_with_its_line_and_all_fields(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, instead: str, name: str
) -> None:
    assert line in WALK
    monkeypatch.setenv("GAMEAGENT_CACHE", str(tmp_path / "cache"))
    text = WALK.replace(line, instead, 1)
    (tmp_path / "walk.py").write_text(text)
    number = next(i for i, row in enumerate(text.splitlines(), 1) if instead in row)
    with pytest.raises(
        GameError, match=f"(?s)walk.py, line {number}: there is no field '{name}'.*STATE: x, steps.*pace"
    ):
        compile_game(load_game(str(tmp_path / "walk.py")))


def test_a_slip_of_an_index_is_an_error_and_no_corruption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAMEAGENT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "walk.py"
    path.write_text(SLIM.replace("s.seen[s.steps % 3]", "s.seen[s.steps]"))
    env = MiniEnv(game=str(path), knobs={"wild": False}).make(1, 0)
    env.reset()
    for _ in range(2):
        env.step(np.zeros(1, np.int64))
    with pytest.raises(GameError, match=r"walk\.py: step failed with IndexError.*NUMBA_DISABLE_JIT=1"):
        env.step(np.zeros(1, np.int64))


def test_the_modules_of_the_game_and_of_the_primitives_stay_plain_python(walk: Path) -> None:
    game = load_game(str(walk))
    compile_game(game)
    assert type(game.module.step).__name__ == "function"
    assert type(game.module.rect).__name__ == "function"
