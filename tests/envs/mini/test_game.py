"""Game files: what is read from them, and what is said when one is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.envs.toys import SLIM, WALK

from gameagent.envs.mini.env import MiniEnv
from gameagent.envs.mini.game import GameError, load_game, local_sources

STEP_TAKES_JUMP = (
    r"walk.py, line \d+: the hook 'step' is\n    def step\(s, move, cfg, rng\):\n"
    r"but is called as\n    def step\(s, move, jump, cfg, rng\):"
)


def written(folder: Path, text: str = WALK, name: str = "walk.py") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return str(folder / name)


def test_everything_a_file_says_is_read(tmp_path: Path) -> None:
    game = load_game(written(tmp_path))
    assert game.name == "walk"
    assert game.actions.heads == {"move": ("left", "right"), "jump": ("no", "yes", "high")}
    assert game.signals == ("score", "luck")
    assert game.features == ("x", "steps")
    assert game.config == {"pace": 1.5, "limit": 20, "wild": True}
    assert game.size == (24, 32)
    assert game.max_steps == 15
    assert game.keymap["a"] == ("move", "left")
    assert game.state["x"] == np.float64
    assert game.state["went"].base == np.int64  # numba has no arrays of bool inside records


@pytest.mark.parametrize(
    ("line", "instead", "message"),
    [
        ("def reset(s, cfg, rng):", "def begin(s, cfg, rng):", r"no hook 'reset'; write\n    def reset\(s, cfg, rng"),
        ("def step(s, move, jump, cfg, rng):", "def step(s, move, cfg, rng):", STEP_TAKES_JUMP),
        ("def render(s, img, cfg):", "render = 3\ndef other(s, img, cfg):", "render = 3"),
        ('SIGNALS = ("score", "luck")', "", "no SIGNALS"),
        ('SIGNALS = ("score", "luck")', 'SIGNALS = ("score", "score")', "SIGNALS needs"),
        ('ACTIONS = {"move": ("left", "right"), "jump": ("no", "yes", "high")}', "ACTIONS = 3", "ACTIONS is head"),
        ('("x", float)', '("x", "f4")', "STATE field 'x' is float32; use float, int or bool"),
        ('("x", float)', '("x", "nonsense")', "STATE is a list"),
        ('("x", float)', '("size", float)', "STATE names 'size', which numpy's records use"),
        ('"pace": 1.5', '"pace": "fast"', "CONFIG values are numbers"),
        ('LIMITS = {"pace"', 'LIMITS = {"speed"', "LIMITS name"),
        ('FEATURES = ("x", "steps")', "", "belong together"),
        ('"d": ("move", "right")', '"d": ("move", "up")', r"KEYMAP\['d'\]"),
        ("def features", "def features(:\n def", r"walk.py, line \d+: "),
        ("ACTIONS = {", "import nowhere_to_be_found\nACTIONS = {", "cannot be imported: ModuleNotFoundError"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_explained(tmp_path: Path, line: str, instead: str, message: str) -> None:
    assert line in WALK
    with pytest.raises(GameError, match=message):
        load_game(written(tmp_path, WALK.replace(line, instead, 1)))


def test_unknown_games_and_files_are_named() -> None:
    with pytest.raises(GameError, match="did you mean 'catch'"):
        load_game("cach")
    with pytest.raises(GameError, match=r"no file \./nothing\.py"):
        load_game("./nothing.py")


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"pase": 2.0}, "did you mean 'pace'"),
        ({"gravity": 2.0}, "has pace, limit, wild"),
        ({"pace": 9.0}, r"knobs\.pace: 9\.0 is out of range; walk allows 0\.5 to 4\.0"),
        ({"limit": 2.5}, r"knobs\.limit: 2\.5 is no int"),
        ({"wild": 1}, r"knobs\.wild: 1 is no bool"),
        ({"pace": True}, r"knobs\.pace: True is no float"),
    ],
)
def test_wrong_knobs_are_explained_when_the_component_is_made(
    tmp_path: Path, knobs: dict[str, float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        MiniEnv(game=written(tmp_path), knobs=knobs)


def test_knobs_take_the_type_of_their_default(tmp_path: Path) -> None:
    made = load_game(written(tmp_path)).knobs({"pace": 2, "limit": 30.0})
    assert made == {"pace": 2.0, "limit": 30, "wild": True}
    assert [type(v) for v in made.values()] == [float, int, bool]


def test_helpers_are_found_through_each_other_and_do_not_clash(tmp_path: Path) -> None:
    for name, value in (("a", 1.0), ("b", 2.0)):
        folder = tmp_path / name
        written(folder, "from deeper import VALUE\ndef double(x):\n    return 2.0 * VALUE + 0.0 * x\n", "helper.py")
        written(folder, f"VALUE = {value}\n", "deeper.py")
        game = written(folder, "from helper import double\n" + SLIM.replace("s.x / 3.0", "double(s.x)"))
        assert [p.name for p in local_sources(Path(game))] == ["walk.py", "helper.py", "deeper.py"]
    for name, value in (("a", 2.0), ("b", 4.0)):
        env = MiniEnv(game=str(tmp_path / name / "walk.py")).make(1, 0)
        env.reset()
        assert env.core.context()["luck"][0] == value


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = written(tmp_path)
    before = load_game(path)
    assert load_game(path) is before
    written(tmp_path, WALK.replace("MAX_STEPS = 15", "MAX_STEPS = 16"))
    assert load_game(path).max_steps == 16


def test_a_mode_without_its_hook_is_refused(tmp_path: Path) -> None:
    bare = WALK.replace("def text", "def _text")
    with pytest.raises(ValueError, match="no hook 'text'"):
        MiniEnv(game=written(tmp_path, bare), obs="text")
