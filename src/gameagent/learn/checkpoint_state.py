"""Environment states in checkpoints: numpy arrays become tensors and back, so that loading never unpickles code.

checkpoint["env"] = pack(env.get_state()); env.set_state(unpack(checkpoint["env"]))
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

_ARRAY = "__ndarray__"


def pack(value: Any) -> Any:
    """A state in a form that `torch.load(weights_only=True)` reads: numpy arrays, structured ones too, as their bytes.

    Raises:
        TypeError: an array of Python objects, or a value that is no number, string, bytes, list, tuple or dict.
    """
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError(f"an environment state may not hold an array of objects (shape {value.shape})")
        raw = torch.frombuffer(bytearray(value.tobytes()), dtype=torch.uint8) if value.nbytes else torch.empty(0)
        return {_ARRAY: raw, "dtype": np.lib.format.dtype_to_descr(value.dtype), "shape": list(value.shape)}
    if isinstance(value, np.generic):
        return pack(np.asarray(value)) | {"scalar": True}
    if isinstance(value, dict):
        return {str(k): pack(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(pack(v) for v in value)
    if isinstance(value, str):
        return str(value)  # an Enum that is a string would be stored as code
    if value is None or isinstance(value, bool | int | float | bytes | torch.Tensor):
        return value
    raise TypeError(f"an environment state may not hold a {type(value).__name__}; see gameagent.envs.base.State")


def unpack(value: Any) -> Any:
    """Inverse of `pack`."""
    if isinstance(value, dict) and _ARRAY in value:
        dtype = np.lib.format.descr_to_dtype(value["dtype"])
        array = np.frombuffer(value[_ARRAY].numpy().tobytes(), dtype).reshape(value["shape"]).copy()
        return array[()] if value.get("scalar") else array
    if isinstance(value, dict):
        return {k: unpack(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(unpack(v) for v in value)
    return value
