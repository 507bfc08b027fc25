"""Policies as one `.onnx` file, raw observations in, logits, action and value out; and playing such a file.

    export_onnx(policy, "policy.onnx"); OnnxPolicy("policy.onnx").infer({"frame": frames})

Inputs are named by observation part, in its own dtype and layout (`frame`: (N, H, W, C) uint8), so that nothing has to
be done to what an environment gives. Outputs: `logits_<head>` (N, size) float32, `action` (N,) int64, the most likely
flat id, and `value` (N,) float32. N is free. The contract (spaces, architecture, provenance) is in the file's metadata.
"""

from __future__ import annotations

import copy
import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import torch
from torch import Tensor, nn

from gameagent.contract import ActionSpace, Obs, ObsSpace, Part
from gameagent.errors import UserError
from gameagent.files import replacing
from gameagent.policies.base import Inference, Policy, check_obs
from gameagent.policies.card import (
    PolicyFileError,
    PolicyNotFoundError,
    make_card,
    pack_card,
    unpack_card,
)

TOLERANCE = 1e-4
"""Largest difference of a logit between torch and ONNX that counts as equal."""
DEFAULT_OPSET = 20
_CHECKED_BATCHES = (1, 7)


class ExportError(UserError):
    """An exported file doesn't compute what the policy does, or the policy can't be exported."""


class OnnxPolicy:
    """An exported policy, played by onnxruntime on one CPU thread.

    Args:
        path: a file that `export_onnx` wrote.

    Raises PolicyNotFoundError, or PolicyFileError for a file that is damaged or was not written by gameagent.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise PolicyNotFoundError(f"no ONNX file at {self.path}; job=export writes one")
        self._session = _session(self.path)
        self.card = unpack_card(self._session.get_modelmeta().custom_metadata_map, self.path)
        """What it says about itself; see `gameagent.policies.bundle.Card`."""
        self.obs_space = ObsSpace.from_dict(self.card["obs_space"])
        self.action_space = ActionSpace.from_dict(self.card["action_space"])

    def infer(self, obs: Obs) -> Inference:
        """Observation parts (N, …) by name -> logits (log-probabilities) of each head and value, as `Policy.infer`."""
        *logits, _, value = self.run(obs)
        return Inference(logits, value)

    def run(self, obs: Obs) -> list[Any]:
        """All outputs of the file in order: logits of each head, action (N,) int64, value (N,) float32."""
        check_obs(self.obs_space, obs)
        return list(self._session.run(None, {name: np.ascontiguousarray(obs[name]) for name in self.obs_space}))


def export_onnx(
    policy: Policy,
    path: str | os.PathLike[str],
    *,
    obs: Obs | None = None,
    opset: int = DEFAULT_OPSET,
    provenance: Mapping[str, Any] | None = None,
    evaluation: Mapping[str, Any] | None = None,
) -> float:
    """Write `policy` to one `.onnx` file, weights inside, once it was proven to compute the same.

    Args:
        policy: computes in float32 in the file, whatever it was trained in.
        path: file to write, complete or not at all.
        obs: observations to prove it on, parts (N, …); default: 16 random ones. Real ones prove more.
        opset: version of the ONNX operator set.
        provenance: see `save_policy`.
        evaluation: see `save_policy`.

    Returns:
        The largest difference of a logit, at most `TOLERANCE`.

    Raises:
        ExportError: the policy can't be exported, or the exported file computes something else. Nothing is left behind.
    """
    target = Path(path)
    if target.suffix != ".onnx":
        raise ExportError(f"an ONNX file's name ends in .onnx, got {target}")
    if Part.text in policy.obs_space:
        raise ExportError("policies that read text can't be exported to ONNX: the file format knows no tokenizer")
    sample = obs or random_obs(policy.obs_space, 16, seed=0)
    reference = copy.deepcopy(policy).float().cpu().eval()
    data = _trace(reference, sample, opset, pack_card(make_card(policy, provenance, evaluation)))
    with replacing(target) as part:
        part.write_bytes(data)
        return verify_onnx(reference, part, sample)


def verify_onnx(policy: Policy, path: str | os.PathLike[str], obs: Obs) -> float:
    """Compare the file with `policy` on `obs` at batch sizes 1, 7 and all of it.

    Returns:
        The largest absolute difference of a logit.

    Raises:
        ExportError: a logit differs by more than `TOLERANCE`, a value by more than that (relative above 1), or another
            action is chosen than rounding explains (the two being as likely within twice the largest difference).
    """
    exported = OnnxPolicy(path)
    count = len(next(iter(obs.values())))
    worst = 0.0
    for size in sorted({*_CHECKED_BATCHES, count}):
        batch = {name: array[np.arange(size) % count] for name, array in obs.items()}
        worst = max(worst, _compare(policy.infer(batch), exported.run(batch), policy.action_space, size))
    return worst


def random_obs(space: ObsSpace, count: int, seed: int) -> Obs:
    """`count` random observations of `space`: uniform pixels, normal features and audio."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.integers(0, 256, (count, *part.shape), dtype=np.uint8)
        if part.kind is Part.frame
        else rng.standard_normal((count, *part.shape), dtype=np.float32)
        for name, part in space.items()
    }


class _Exported(nn.Module):
    """The function that the file computes: positional parts in, a tuple of outputs out."""

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, *parts: Tensor) -> tuple[Tensor, ...]:
        named = dict(zip(self.policy.obs_space, parts, strict=True))
        distribution, value = self.policy(self.policy.prepare(named))
        return (*distribution.heads(), distribution.mode(), value)


def _trace(policy: Policy, obs: Obs, opset: int, metadata: dict[str, str]) -> bytes:
    """The serialised ONNX model of `policy` with a free batch size."""
    example = tuple(torch.from_numpy(np.array(obs[name][np.arange(2) % len(obs[name])])) for name in policy.obs_space)
    batch = torch.export.Dim("batch", min=1)
    try:
        with _quiet():
            program = torch.onnx.export(
                _Exported(policy).eval(),
                example,
                dynamo=True,
                dynamic_shapes=(tuple({0: batch} for _ in example),),
                input_names=list(policy.obs_space),
                output_names=[*(f"logits_{head}" for head in policy.action_space.heads), "action", "value"],
                opset_version=opset,
                verbose=False,
            )
    except Exception as e:  # the exporter raises many kinds; all mean that this network can't be traced
        raise ExportError(f"{type(policy).__name__} can't be exported to ONNX (opset {opset}): {e}") from e
    if program is None:
        raise ExportError(f"{type(policy).__name__} can't be exported to ONNX (opset {opset})")
    proto = program.model_proto
    for key, value in metadata.items():
        proto.metadata_props.add(key=key, value=value)
    return bytes(proto.SerializeToString())


def _compare(expected: Inference, found: list[Any], space: ActionSpace, size: int) -> float:
    """Largest logit difference between torch's `expected` and the file's outputs; raises ExportError if too large."""
    *logits, action, value = found
    # np.max keeps a NaN of any head; Python's max drops all but a first one. Comparing with it below is then False.
    error = float(np.max([np.abs(a - b).max() for a, b in zip(expected.logits, logits, strict=True)]))
    off = float((np.abs(value - expected.value) / np.maximum(1, np.abs(expected.value))).max())
    if not error <= TOLERANCE or not off <= TOLERANCE:
        raise ExportError(
            f"the exported file computes something else at batch {size}: logits differ by {error:.1e}, values by "
            f"{off:.1e}, allowed is {TOLERANCE:.0e}"
        )
    for head, ids in zip(expected.logits, space.unflatten(action).T, strict=True):
        gap = head.max(-1) - head[np.arange(size), ids]
        if (gap > 2 * error).any():
            raise ExportError(f"the exported file chooses other actions at batch {size}, by {gap.max():.1e} in logits")
    return error


def _session(path: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as e:  # onnxruntime's exceptions share no public base class
        raise PolicyFileError(f"{path} is no ONNX file that onnxruntime can run, damaged or cut short ({e})") from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter, which logs and warns about its own internals."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
