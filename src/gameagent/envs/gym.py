"""`GymEnv`: any Gymnasium id as an environment, `env=gym env.id=CartPole-v1`.

env = GymEnv(id="CartPole-v1").make(num_envs=8, seed=0)
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Annotated, Any

import gymnasium
from gymnasium.error import Error
from gymnasium.wrappers import StickyAction, TimeLimit
from pydantic import Field

from gameagent.component import component
from gameagent.contract import ActionSpace, ObsSpace
from gameagent.envs.base import Env, Transform
from gameagent.envs.gym_episodes import Episodes
from gameagent.envs.gym_spaces import Actions, Observations
from gameagent.envs.gym_vector import GymVectorEnv
from gameagent.envs.wrappers import Chain, frame_transforms
from gameagent.errors import EnvError


@component
class GymEnv(Env):
    """An environment of Gymnasium's registry, with discrete actions and frames or numbers to see."""

    num_envs: Annotated[int, Field(ge=1)] = 8
    """Envs played side by side, 1 or more."""
    id: str = "CartPole-v1"
    """Gymnasium id; module:Id-v0 imports a module that registers it first."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Arguments for `gymnasium.make`, by name."""
    frame_skip: Annotated[int, Field(ge=1)] = 1
    """Frames that each action is held for, 1 or more; rewards are summed, only the last frame is seen."""
    frame_size: Annotated[int, Field(ge=1)] | None = None
    """Side of the square that frames are resized to, pixels; null keeps the game's size."""
    frame_stack: Annotated[int, Field(ge=1)] = 1
    """Latest observations seen at once, 1 or more."""
    grey: bool = False
    """Brightness instead of colour."""
    sticky: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Probability, each frame, that the previous action is repeated instead, 0 up to but without 1."""
    max_episode_steps: Annotated[int, Field(ge=1)] | None = None
    """Steps (after frame skip) at which an episode is cut short; null: the limit that the id is registered with."""

    def __post_init__(self) -> None:
        """Refuse an unknown id while the mistake is still easy to name. Raises ValueError."""
        if ":" not in self.id and self.id not in gymnasium.registry:
            close = difflib.get_close_matches(self.id, gymnasium.registry, 3, 0.5)
            raise ValueError(
                f"id: Gymnasium has no {self.id!r}; the nearest are {', '.join(close) or 'none'}. "
                "An id of another package is written module:Id-v0, where importing the module registers it"
            )

    @property
    def obs_space(self) -> ObsSpace:
        """What the policy sees of one env."""
        env = self._single()
        raw = Observations(env.observation_space, self.id).space
        env.close()
        return Chain(raw, self.transforms(raw)).space

    @property
    def actions(self) -> ActionSpace:
        """What a player can do."""
        env = self._single()
        space = Actions(env, self.id).space
        env.close()
        return space

    def make(self, num_envs: int | None = None, seed: int | None = 0, render_mode: str | None = None) -> GymVectorEnv:
        """The batch, not yet reset.

        Raises:
            EnvError: spaces that gameagent cannot use, or an env that cannot be made.
        """
        probe = self._single()
        observations, actions = Observations(probe.observation_space, self.id), Actions(probe, self.id)
        offered = probe.metadata.get("render_modes", [])
        probe.close()
        if render_mode not in (None, *offered):
            raise EnvError(f"{self.id} offers the render modes {offered}, not {render_mode!r}")
        if render_mode is not None:
            self._check_renders(render_mode)
        transforms = self.transforms(observations.space)
        made = [lambda: Episodes(self._single(render_mode), self.id)] * (num_envs or self.num_envs)
        return GymVectorEnv(made, self.id, observations, actions, transforms, seed, self.frame_skip)

    def raw(self) -> GymEnv:
        """The same env, every frame, nothing resized, stacked or sticky, with its registered limit."""
        plain: dict[str, Any] = {"frame_size": None, "frame_stack": 1, "grey": False, "sticky": 0.0}
        return replace(self, frame_skip=1, max_episode_steps=None, **plain)

    def transforms(self, raw: ObsSpace) -> Sequence[Transform]:
        """What turns raw observations, every `frame_skip`-th, into what the policy sees; made anew for one batch."""
        return frame_transforms(raw, size=self.frame_size, grey=self.grey, stack=self.frame_stack)

    def _check_renders(self, render_mode: str) -> None:
        """Some envs only find out at the first picture that a library is missing: better now than an episode later."""
        probe = self._single(render_mode)
        try:
            probe.reset(seed=0)
            probe.render()
        except Error as e:
            raise EnvError(f"{self.id} cannot draw in render mode {render_mode!r}: {e}") from e
        finally:
            probe.close()

    def _single(self, render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
        """One env with sticky actions, frame skip and limit, in this order."""
        limit: dict[str, Any] = {} if self.max_episode_steps is None else {"max_episode_steps": -1}
        try:
            env = gymnasium.make(self.id, render_mode=render_mode, **limit, **self.kwargs)
        except (Error, TypeError, ImportError, AttributeError, ValueError) as e:
            raise EnvError(f"gymnasium.make({self.id!r}, **{self.kwargs}) failed: {type(e).__name__}: {e}") from e
        if self.sticky > 0:
            env = StickyAction(env, self.sticky)
        if self.frame_skip > 1:
            env = FrameSkip(env, self.frame_skip)
        return env if self.max_episode_steps is None else TimeLimit(env, self.max_episode_steps)


class FrameSkip(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Plays each action for `frames` frames, or until the episode ends; rewards are summed."""

    def __init__(self, env: gymnasium.Env[Any, Any], frames: int) -> None:
        super().__init__(env)
        self._frames = frames

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step of several frames."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        total = float(reward)
        for _ in range(self._frames - 1):
            if terminated or truncated:
                break
            obs, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
        return obs, total, terminated, truncated, info
