"""Saved policies: one `.safetensors` file with the weights and, in its metadata, all that is needed to use them.

    save_policy("policy.safetensors", policy, provenance={"experiment": "catch"}); policy = load_policy("outputs/run")

`load_policy` also reads `.onnx` exports, the learner's `.ckpt` files and whole run folders. Nothing is ever unpickled
into objects: a file holds tensors, numbers, text, and names of components. Building a component imports the module or
runs the file that defines it; `gameagent.component.check_trusted` says which ones a saved file may name. An `.onnx`
file builds no components.
"""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load as parse_tensors
from safetensors.torch import save as pack_tensors
from torch import Tensor

from gameagent.component import ComponentFileError, UntrustedError, from_config
from gameagent.contract import CONTRACT_VERSION, ActionSpace, ContractError, ObsSpace
from gameagent.files import replacing
from gameagent.policies.base import Architecture, Policy
from gameagent.policies.card import (
    Card,
    PolicyFileError,
    PolicyNotFoundError,
    make_card,
    pack_card,
    unpack_card,
)

if TYPE_CHECKING:
    from gameagent.policies.onnx import OnnxPolicy

POLICY_FILE = "policy.safetensors"
CHECKPOINT_FILE = "checkpoints/last.ckpt"
ONNX_FILE = "policy.onnx"
_RUN_FILES = (POLICY_FILE, CHECKPOINT_FILE, ONNX_FILE)


def save_policy(
    path: str | os.PathLike[str],
    policy: Policy,
    *,
    provenance: Mapping[str, Any] | None = None,
    evaluation: Mapping[str, Any] | None = None,
) -> Path:
    """Write `policy` to one `.safetensors` file, complete or not at all.

    Args:
        path: file to write; its folder is made if needed.
        policy: its parameters and buffers are saved in their own dtype.
        provenance: where it came from (experiment, overrides, git commit, env steps, seed), plain values.
        evaluation: results, plain values.

    Raises OSError where the place can't be written.
    """
    target = Path(path)
    if target.suffix != ".safetensors":
        raise PolicyFileError(f"policies are saved as .safetensors files, got {target}; export_onnx writes .onnx")
    weights = {
        name: t.detach().cpu().clone(memory_format=torch.contiguous_format) for name, t in policy.state_dict().items()
    }
    data = pack_tensors(weights, pack_card(make_card(policy, provenance, evaluation)))
    with replacing(target) as part:
        part.write_bytes(data)
    return target


def load_policy(path: str | os.PathLike[str]) -> Policy | OnnxPolicy:
    """The policy saved at `path`: a `.safetensors`, `.onnx` or `.ckpt` file, or a run folder that holds one.

    A torch policy comes in evaluation mode on the CPU. In a run folder the finished policy comes before the last
    checkpoint, and that before an export.

    Raises:
        PolicyNotFoundError: nothing there.
        PolicyFileError: truncated, foreign, of another contract version, not fitting the architecture it names, or
            naming code that is not trusted to run.
    """
    file = find_policy(path)
    if file.suffix == ".onnx":
        from gameagent.policies.onnx import OnnxPolicy  # onnxruntime is loaded only where it is used

        return OnnxPolicy(file)
    card, weights = _read_checkpoint(file) if file.suffix == ".ckpt" else _read_safetensors(file)
    policy = _rebuild(card, file)
    try:
        policy.load_state_dict(weights)
    except (RuntimeError, AttributeError) as e:
        raise PolicyFileError(f"{file}: the weights don't fit the architecture that the file names: {e}") from None
    return policy.eval()


def read_card(path: str | os.PathLike[str]) -> Card:
    """What the policy at `path` says about itself (see `Card`), without building it. Raises as `load_policy`."""
    file = find_policy(path)
    if file.suffix == ".onnx":
        from gameagent.policies.onnx import OnnxPolicy

        return OnnxPolicy(file).card
    if file.suffix == ".ckpt":
        return _read_checkpoint(file)[0]
    return unpack_card(_metadata(file), file)


def add_evaluation(path: str | os.PathLike[str], evaluation: Mapping[str, Any]) -> None:
    """Put results into the `.safetensors` file at `path` (or in that run folder), over earlier ones of the same keys.

    The file is replaced as a whole; its weights stay bit for bit. Raises as `load_policy`.
    """
    file = find_policy(path)
    if file.suffix != ".safetensors":
        raise PolicyFileError(f"evaluations are kept in .safetensors files, got {file}")
    card, weights = _read_safetensors(file)
    card["evaluation"] = {**(card["evaluation"] or {}), **evaluation}
    data = pack_tensors(weights, pack_card(card))
    with replacing(file) as part:
        part.write_bytes(data)


def find_policy(path: str | os.PathLike[str]) -> Path:
    """The policy file that `path` means: itself, or the one in that run folder.

    Raises PolicyNotFoundError where there is none, PolicyFileError for a file of another kind.
    """
    given = Path(path)
    if given.is_dir():
        for name in _RUN_FILES:
            if (given / name).is_file():
                return given / name
        files = ", ".join(_RUN_FILES)
        raise PolicyNotFoundError(f"{given} holds no policy: none of {files} is in it; has its run saved one?")
    if not given.exists():
        raise PolicyNotFoundError(f"no policy at {given}; give a .safetensors, .onnx or .ckpt file, or a run folder")
    if given.suffix not in {".safetensors", ".onnx", ".ckpt"}:
        raise PolicyFileError(
            f"{given} is no policy file; policies are .safetensors, .onnx and .ckpt files, or run folders"
        )
    return given


def _metadata(file: Path) -> dict[str, str]:
    try:
        with safe_open(file, framework="pt") as opened:
            return opened.metadata() or {}
    except SafetensorError as e:
        raise _damaged(file, e) from None


def _read_safetensors(file: Path) -> tuple[Card, dict[str, Tensor]]:
    metadata = _metadata(file)
    try:
        return unpack_card(metadata, file), parse_tensors(file.read_bytes())
    except SafetensorError as e:
        raise _damaged(file, e) from None


def _read_checkpoint(file: Path) -> tuple[Card, dict[str, Tensor]]:
    """A learner's checkpoint: its policy's description under `policy`, the weights under `policy_state`."""
    data = file.read_bytes()
    try:
        stored = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise PolicyFileError(
            f"{file} is damaged, or holds Python objects, which gameagent never loads; "
            "a learner's own .ckpt holds tensors and plain values only"
        ) from None
    except Exception as e:  # torch raises all kinds, even OSError, for what is no whole checkpoint
        raise _damaged(file, e) from None
    if not isinstance(stored, dict) or "policy" not in stored or "policy_state" not in stored:
        raise PolicyFileError(f"{file} is no checkpoint of a gameagent learner: it has no 'policy' and 'policy_state'")
    about = {"contract": CONTRACT_VERSION, "provenance": {}, "evaluation": None}
    return {**about, **stored["policy"]}, stored["policy_state"]


def _rebuild(card: Card, file: Path) -> Policy:
    """A policy with fresh weights from its description."""
    try:
        spaces = ObsSpace.from_dict(card["obs_space"]), ActionSpace.from_dict(card["action_space"])
        architecture = from_config(card["architecture"], saved=True)
        if not isinstance(architecture, Architecture):
            raise TypeError(f"{type(architecture).__name__} is no policy architecture")
        return architecture.build(*spaces)
    except UntrustedError as e:
        raise PolicyFileError(f"{file} was not loaded: its component {e}") from None
    except ComponentFileError as e:
        raise PolicyFileError(f"{file} needs a component of a file: {_file_advice(e)}") from None
    except ImportError as e:
        raise PolicyFileError(
            f"{file} needs a component that can't be imported ({e}); install the package or put the file that defines "
            "it on the Python path"
        ) from None
    except (ContractError, KeyError, TypeError, ValueError) as e:
        raise PolicyFileError(f"{file} describes a policy that can't be built: {e}") from None


def _file_advice(error: ComponentFileError) -> str:
    if Path(str(error.path)).is_file():
        return f"{error}; correct that file"
    return (
        f"the file {error.path} is not there; put it back, or load the policy where the file is and save it again with "
        "the file's new place"
    )


def _damaged(file: Path, error: Exception) -> PolicyFileError:
    return PolicyFileError(f"{file} is damaged or cut short ({error}); use another copy, or save the policy again")
