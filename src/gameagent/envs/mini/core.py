"""`MiniCore`: N envs of one mini-game, as a `Core` for `CoreVectorEnv`.

core = MiniCore(load_game("catch"), num_envs=64, knobs={"speed": 3.0}, parts=("frame",))
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from gameagent.contract import Array, BoolArray, FloatArray, IntArray, Obs, ObsPart, ObsSpace, Part
from gameagent.envs.base import State
from gameagent.envs.core import Core
from gameagent.envs.mini.compile import Kernel, compile_game, config_layout
from gameagent.envs.mini.game import Game, GameError, Knob
from gameagent.envs.mini.rng import RECORD
from gameagent.errors import EnvError


class MiniCore(Core):
    """State records of N envs and the compiled kernel that moves them.

    Args:
        game: the game.
        num_envs: N.
        knobs: settings over the game's defaults.
        parts: what `observe` gives: "frame", "features", "text", or several.
    """

    def __init__(self, game: Game, num_envs: int, knobs: Mapping[str, Knob], parts: Sequence[str] = ("frame",)) -> None:
        self.name, self.num_envs, self.actions, self.max_frames = game.name, num_envs, game.actions, game.max_steps
        self.space = observation_space(game, parts)
        self._game, self._kernels = game, compile_game(game)
        self._states = np.zeros(num_envs, game.state)
        self._blank = np.zeros((), game.state)
        self._rngs = np.zeros(num_envs, RECORD)
        self._cfg = np.zeros(1, config_layout(game))
        self._signals = np.zeros(num_envs, [(name, "f8") for name in game.signals])
        for name, value in game.knobs(knobs).items():
            self._cfg[name] = value
        self._flat = self._signals.view(np.float64).reshape(num_envs, len(game.signals))
        self._all = np.ones(num_envs, np.bool_)
        # Plain Python reads fields by attribute through recarrays; numba does so anyway and takes plain arrays faster.
        wrap = np.recarray if numba.config.DISABLE_JIT else np.ndarray
        self._records = tuple(a.view(wrap) for a in (self._states, self._cfg, self._rngs, self._signals))

    def reset(self, mask: BoolArray, keys: NDArray[np.uint64]) -> None:
        """Start a new episode in the masked envs, from a record of zeros: nothing of the last one is left."""
        states, cfg, rngs, signals = self._records
        self._states[mask] = self._blank
        self._run("reset", self._kernels.reset, states, cfg, rngs, keys, signals, mask)

    def advance(self, actions: IntArray, active: BoolArray) -> BoolArray:
        """Play one frame; gives which games ended (N,)."""
        states, cfg, rngs, signals = self._records
        ended = np.empty(self.num_envs, np.bool_)
        self._run("step", self._kernels.advance, states, cfg, rngs, actions, active, signals, ended)
        return ended

    def observe(self, out: Obs, mask: BoolArray) -> None:
        """Draw the frames, compute the features and write the texts of the masked envs, whichever `space` has."""
        states, cfg, _, _ = self._records
        if "frame" in out:
            self._run("render", self._kernels.render, states, cfg, out["frame"], mask)
        if "features" in out and self._kernels.features is not None:
            self._run("features", self._kernels.features, states, cfg, out["features"], mask)
        if "text" in out:
            for i in np.flatnonzero(mask):
                out["text"][i] = self._text(int(i))

    def context(self) -> dict[str, FloatArray]:
        """The game's signals, each (N,)."""
        return dict(zip(self._game.signals, self._flat.T.copy(), strict=True))

    def expert(self) -> IntArray | None:
        """The game's own expert, or None where its file has none."""
        if self._kernels.expert is None:
            return None
        out = np.zeros(self.num_envs, np.int64)
        self._run("expert", self._kernels.expert, *self._records[:2], out)
        return out

    def frames(self, mask: BoolArray | None = None) -> Array:
        """Pictures (N, H, W, 3); rows outside the mask are black."""
        out = np.zeros((self.num_envs, *self._game.size, 3), np.uint8)
        self._run("render", self._kernels.render, *self._records[:2], out, self._all if mask is None else mask)
        return out

    def get_state(self) -> State:
        """The records as bytes, with their layout."""
        return {"layout": self._layout(), **{name: _bytes(array).copy() for name, array in self._arrays().items()}}

    def set_state(self, state: State) -> None:
        """Inverse of `get_state`. Raises EnvError where the game's STATE or SIGNALS have changed since."""
        if state.get("layout") != self._layout():
            raise EnvError(
                f"the saved state of {self.name} has another layout; STATE, SIGNALS or num_envs changed since:\n"
                f"  saved {state.get('layout')}\n  now   {self._layout()}"
            )
        for name, array in self._arrays().items():
            _bytes(array)[:] = state[name]

    def _run(self, hook: str, kernel: Kernel, *arguments: Any) -> None:
        """Call a kernel. Raises GameError with what the game's hook raised, and its line where it is plain Python."""
        try:
            kernel(*arguments)
        except Exception as e:
            told = f"{type(e).__name__}: {e}"
            frames = traceback.extract_tb(e.__traceback__)
            own = [frame for frame in frames if Path(frame.filename) in self._game.sources]
            if own:
                where = f"{Path(own[-1].filename).name}, line {own[-1].lineno}, in {own[-1].name}"
                raise GameError(f"{where}: {told}") from e
            again = "type NUMBA_DISABLE_JIT=1 before the same command to see the line"
            raise GameError(f"{self._game.path.name}: {hook} failed with {told}; {again}") from e

    def _arrays(self) -> dict[str, Array]:
        return {"states": self._states, "rngs": self._rngs, "signals": self._signals}

    def _layout(self) -> str:
        return f"{self.num_envs} × {self._game.state.descr}, {self._game.signals}"

    def _text(self, i: int) -> str:
        hook = self._game.hook("text")
        assert hook is not None, self.name  # observation_space has seen to it
        text = hook(self._states.view(np.recarray)[i], self._cfg.view(np.recarray)[0])
        if not isinstance(text, str) or len(text) > self._game.max_chars:
            raise GameError(
                f"{self._game.path.name}: text(s, cfg) gives a string of at most {self._game.max_chars} characters "
                f"(MAX_CHARS), got {str(text)[:200]!r}"
            )
        return text


def observation_space(game: Game, parts: Sequence[str]) -> ObsSpace:
    """What a game shows. Raises GameError where it lacks the hook for a part."""
    made: dict[str, ObsPart] = {}
    for part in parts:
        if part != "frame" and game.hook(part) is None:
            raise GameError(f"{game.path.name} has no hook {part!r}, so obs={part} is not offered; try obs=pixels")
        if part == "frame":
            made[part] = ObsPart(Part.frame, (*game.size, 3))
        elif part == "features":
            made[part] = ObsPart(Part.features, (len(game.features),), names=game.features)
        else:
            made[part] = ObsPart(Part.text, (), max_chars=game.max_chars)
    return ObsSpace(made)


def _bytes(array: Array) -> NDArray[Any]:
    """The array's memory as (N, bytes): state records then travel through any file format."""
    return array.view(np.uint8).reshape(len(array), -1)
