"""`MiniEnv`: any mini-game as an environment component, a built-in one or a file of your own.

env = MiniEnv(game="catch", frame_skip=4, frame_size=56).make(num_envs=64, seed=0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import Annotated

from gymnasium.vector import AutoresetMode
from pydantic import Field

from gameagent.component import component
from gameagent.contract import ActionSpace, ObsSpace
from gameagent.envs.base import Env, Transform
from gameagent.envs.mini.core import MiniCore, observation_space
from gameagent.envs.mini.game import Game, load_game
from gameagent.envs.vector import CoreVectorEnv, RewardFunction
from gameagent.envs.wrappers import Chain, frame_transforms
from gameagent.rewards.base import Reward
from gameagent.rewards.own import OwnReward


class Observe(StrEnum):
    """What the policy sees of a mini-game."""

    pixels = "pixels"
    features = "features"
    both = "both"
    text = "text"


_PARTS = {
    Observe.pixels: ("frame",),
    Observe.features: ("features",),
    Observe.both: ("frame", "features"),
    Observe.text: ("text",),
}


@component
class MiniEnv(Env):
    """A mini-game: one file with four hooks, compiled to a batch kernel."""

    num_envs: Annotated[int, Field(ge=1)] = 64
    """Games played side by side, 1 or more."""
    game: str = "catch"
    """Built-in game (catch) or path of a game file (./my_game.py)."""
    knobs: dict[str, bool | int | float] = field(default_factory=dict)
    """Difficulty and other settings of the game, by name; those left out keep the game's defaults (its CONFIG)."""
    obs: Observe = Observe.pixels
    """What the policy sees: pixels, features (numbers), both, or text."""
    frame_skip: Annotated[int, Field(ge=1)] = 1
    """Frames that each action is held for, 1 or more; only the last one is seen."""
    frame_size: Annotated[int, Field(ge=1)] | None = None
    """Side of the square that frames are resized to, pixels; null keeps the game's size."""
    frame_stack: Annotated[int, Field(ge=1)] = 1
    """Latest observations seen at once, 1 or more."""
    grey: bool = False
    """Brightness instead of colour."""
    sticky: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Probability, each frame, that the previous action is repeated instead, 0 to 1."""
    max_episode_steps: Annotated[int, Field(ge=1)] | None = None
    """Steps (after frame skip) at which an episode is cut short; null: the game's own limit."""
    reward: Reward = field(default_factory=OwnReward)
    """What is rewarded; `own` is the game's own reward."""

    def __post_init__(self) -> None:
        """Refuse what the game file doesn't have while the mistake is still easy to name. Raises GameError."""
        game = self._game()
        game.knobs(self.knobs)
        observation_space(game, _PARTS[self.obs])

    @property
    def obs_space(self) -> ObsSpace:
        """What the policy sees of one env."""
        raw = observation_space(self._game(), _PARTS[self.obs])
        return Chain(raw, self.transforms(raw)).space

    @property
    def actions(self) -> ActionSpace:
        """What a player can do."""
        return self._game().actions

    def make(
        self,
        num_envs: int | None = None,
        seed: int | None = 0,
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode = AutoresetMode.SAME_STEP,
    ) -> CoreVectorEnv:
        """The batch, not yet reset. `CoreVectorEnv` explains the arguments."""
        core = MiniCore(self._game(), num_envs or self.num_envs, self.knobs, _PARTS[self.obs])
        return CoreVectorEnv(
            core,
            self._reward_function(),
            seed=seed,
            frame_skip=self.frame_skip,
            sticky=self.sticky,
            max_episode_steps=self.max_episode_steps,
            transforms=self.transforms(core.space),
            render_mode=render_mode,
            autoreset_mode=autoreset_mode,
        )

    def raw(self) -> MiniEnv:
        """The same game, every frame at full size, nothing stacked, no sticky actions, the game's own limit."""
        return replace(
            self,
            frame_skip=1,
            frame_size=None,
            frame_stack=1,
            grey=False,
            sticky=0.0,
            max_episode_steps=None,
        )

    def transforms(self, raw: ObsSpace) -> Sequence[Transform]:
        """What turns raw observations, every `frame_skip`-th, into what the policy sees; made anew for one batch."""
        return frame_transforms(raw, size=self.frame_size, grey=self.grey, stack=self.frame_stack)

    def _game(self) -> Game:
        return load_game(self.game)

    def _reward_function(self) -> RewardFunction:
        hook = self._game().hook("reward")
        return hook if isinstance(self.reward, OwnReward) and hook is not None else self.reward
