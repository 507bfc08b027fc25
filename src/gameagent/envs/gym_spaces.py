"""Gymnasium's spaces in gameagent's terms: which part an observation becomes, which labels the actions get.

observations = Observations(env.observation_space, "CartPole-v1"); parts = observations.parts(batch)
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from gameagent.contract import ActionSpace, Array, IntArray, Obs, ObsPart, ObsSpace, Part
from gameagent.errors import EnvError


class Observations:
    """Boxes of uint8 with 2 or 3 axes are the frame (H, W, C), all other boxes are flattened into the features.

    Args:
        space: of one env: a Box, or a flat Dict of Boxes with at most one frame.
        name: of the env, for messages.

    Raises:
        EnvError: any other space.
    """

    def __init__(self, space: spaces.Space[Any], name: str) -> None:
        self._several = isinstance(space, spaces.Dict)
        boxes = dict(space.spaces) if isinstance(space, spaces.Dict) else {"": space}
        for key, box in boxes.items():
            if not isinstance(box, spaces.Box):
                where = f"{name}: the observation{f' {key!r}' if key else ''} is {box}"
                raise EnvError(
                    f"{where}; gameagent reads Boxes and flat Dicts of them. Wrap it (FlattenObservation, say)"
                )
        frames = [key for key, box in boxes.items() if _is_frame(box)]
        if len(frames) > 1:
            raise EnvError(
                f"{name}: {frames} all look like frames (uint8, 2 or 3 axes); one frame at most is supported"
            )
        self._frame = frames[0] if frames else None
        self._numbers = [key for key in boxes if key != self._frame]
        parts: dict[str, ObsPart] = {}
        if self._frame is not None:
            parts["frame"] = ObsPart(Part.frame, _frame_shape(boxes[self._frame], name))
        if self._numbers:
            size = sum(int(np.prod(boxes[key].shape or ())) for key in self._numbers)
            parts["features"] = ObsPart(Part.features, (size,))
        self.space = ObsSpace(parts)

    def parts(self, batch: Any) -> Obs:
        """A batch of observations (N, …), as `SyncVectorEnv` stacks them, by part name, in new arrays."""
        given = batch if self._several else {"": batch}
        parts: Obs = {}
        if self._frame is not None:
            frame = np.array(given[self._frame], np.uint8)
            parts["frame"] = frame.reshape(len(frame), *self.space["frame"].shape)
        if self._numbers:
            flat = [np.asarray(given[key], np.float32).reshape(len(given[key]), -1) for key in self._numbers]
            parts["features"] = np.concatenate(flat, 1)
        return parts

    def one(self, obs: Any) -> Obs:
        """The same for a single observation: a batch of one."""
        return self.parts({k: np.asarray(v)[None] for k, v in obs.items()} if self._several else np.asarray(obs)[None])


def _is_frame(box: Any) -> bool:
    return bool(box.dtype == np.uint8) and len(box.shape) in (2, 3)


def _frame_shape(box: Any, name: str) -> tuple[int, ...]:
    shape = (*box.shape, 1) if len(box.shape) == 2 else box.shape
    if shape[-1] > 4:
        raise EnvError(
            f"{name}: frames of shape {box.shape}; gameagent expects height × width × channels (1 to 4 of them). "
            "Leave Gymnasium's frame stacking out and use env.frame_stack"
        )
    return shape


class Actions:
    """Discrete and MultiDiscrete actions as labelled heads.

    Args:
        env: whose `action_space` it is; its `get_action_meanings`, if any, name the labels.
        name: of the env, for messages.

    Raises:
        EnvError: another action space.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], name: str) -> None:
        space = env.action_space
        if isinstance(space, spaces.Discrete):
            self._start: Array = np.array([space.start])
            self._single = True
            self.space = ActionSpace({"action": _labels(env, int(space.n), int(space.start))})
        elif isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1:
            self._start, self._single = space.start, False
            sizes = [(int(n), int(first)) for n, first in zip(space.nvec, space.start, strict=True)]
            self.space = ActionSpace({f"head{i}": _numbers(n, first) for i, (n, first) in enumerate(sizes)})
        else:
            raise EnvError(
                f"{name}: actions are {space}; gameagent plays Discrete and one-axis MultiDiscrete. "
                "Make continuous actions discrete with a gymnasium.ActionWrapper, and register that"
            )

    def native(self, flat: IntArray) -> Array:
        """Flat ids (N,) as the env wants them: (N,), or (N, heads) for MultiDiscrete."""
        ids = self.space.unflatten(flat) + self._start
        return ids[:, 0] if self._single else ids


def _numbers(n: int, start: int) -> tuple[str, ...]:
    return tuple(str(start + i) for i in range(n))


def _labels(env: gymnasium.Env[Any, Any], n: int, start: int) -> tuple[str, ...]:
    meanings = getattr(env.unwrapped, "get_action_meanings", None)
    labels = tuple(map(str, meanings())) if meanings is not None else ()
    return labels if len(set(labels)) == n else _numbers(n, start)
