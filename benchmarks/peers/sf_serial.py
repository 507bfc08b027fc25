"""Steps per second of sample-factory's serial mode, for `ppo_speed.py --sample-factory PYTHON`.

    PYTHON benchmarks/peers/sf_serial.py --threads 1 --iterations 2

PYTHON: an environment of its own with `pip install sample-factory==2.1.1`, whose pins clash
with gameagent's.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from sample_factory.algo.learning.learner import Learner
from sample_factory.algo.utils.context import global_model_factory
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.model.encoder import Encoder
from sample_factory.train import run_rl

sys.path.insert(0, str(Path(__file__).parents[1]))
from ppo_speed import ENVS, EPOCHS, MINIBATCH, STEPS, WIDTH, convolutions, noise


class Pixels(Encoder):  # type: ignore[misc]
    """The network that all peers train."""

    def __init__(self, cfg: Any, space: Any) -> None:
        super().__init__(cfg)
        self.layers = convolutions()

    def forward(self, obs: dict[str, torch.Tensor]) -> torch.Tensor:
        """(B, 3, 112, 112) -> (B, width)."""
        return self.layers(obs["obs"])  # type: ignore[no-any-return]

    def get_out_size(self) -> int:
        """Length of the latent vector."""
        return WIDTH


def make_env(name: str, cfg: Any = None, env_config: Any = None, render_mode: str | None = None) -> Any:
    """What sample-factory calls for each env; it pickles this function."""
    return noise(channels_first=True)


def make_encoder(cfg: Any, space: Any) -> Encoder:
    """What sample-factory calls for each network."""
    return Pixels(cfg, space)


def main() -> None:
    """Train for the iterations asked for and print the speed of all but the first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=2)
    options = parser.parse_args()
    ends: list[float] = []
    train = Learner.train

    def timed(self: Learner, batch: Any) -> Any:
        torch.set_num_threads(options.threads)
        result = train(self, batch)
        ends.append(time.perf_counter())
        return result

    Learner.train = timed
    register_env("noise", make_env)
    global_model_factory().register_encoder_factory(make_encoder)
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "algo": "APPO",
            "env": "noise",
            "device": "cpu",
            "experiment": "speed",
            "train_dir": folder,
            "batch_size": MINIBATCH,
            "num_batches_per_epoch": ENVS * STEPS // MINIBATCH,
            "num_epochs": EPOCHS,
            "rollout": STEPS,
            "use_rnn": False,
            "recurrence": 1,
            "num_workers": 1,
            "num_envs_per_worker": ENVS,
            "worker_num_splits": 1,
            "normalize_input": False,
            "normalize_returns": False,
            "obs_scale": 255,
            "with_vtrace": False,
            "nonlinearity": "relu",
            "actor_critic_share_weights": False,
            "serial_mode": True,
            "async_rl": False,
            "train_for_env_steps": ENVS * STEPS * (options.iterations + 3),
            "save_every_sec": 100_000,
            "decorrelate_envs_on_one_worker": False,
            "decorrelate_experience_max_seconds": 0,
            "set_workers_cpu_affinity": False,
        }
        partial, _ = parse_sf_args([f"--{name}={value}" for name, value in settings.items()])
        run_rl(parse_full_cfg(partial, [f"--{name}={value}" for name, value in settings.items()]))
    measured = ends[options.iterations] - ends[0]
    print(json.dumps(ENVS * STEPS * options.iterations / measured))


if __name__ == "__main__":
    main()
