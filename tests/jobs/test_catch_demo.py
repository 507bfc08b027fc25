"""The demo from end to end: a small version every time, the real one for three seeds where there is time."""

from __future__ import annotations

from pathlib import Path

import pytest

from gameagent.config import build, compose
from gameagent.evaluation.stats import Estimate
from gameagent.evaluation.summary import estimate, read_json

SMALL = [
    "env.num_envs=8",
    'job.more.collect=["job.episodes=2","job.num_envs=2","env.max_episode_steps=60"]',
    'job.more.sft=["learner.epochs=1"]',
    "learner.rollout_steps=16",
    'job.more.ppo=["learner.total_steps=512","learner.minibatch_size=64","env.max_episode_steps=30"]',
    'job.more.evaluate_sft=["job.episodes=4","env.max_episode_steps=40"]',
    'job.more.evaluate_ppo=["job.episodes=4","env.max_episode_steps=40"]',
    'job.more.export=["job.steps=4"]',
    'job.more.record=["job.episodes=2","job.seconds=2"]',
]
FILES = {
    "01_collect": "episodes.zarr",
    "02_sft": "policy.safetensors",
    "03_ppo": "policy.safetensors",
    "04_evaluate_sft": "eval.json",
    "05_evaluate_ppo": "eval.json",
    "06_compare": "compare.json",
    "07_export": "policy.onnx",
    "08_record": "video.mp4",
}


def scores(root: Path) -> tuple[Estimate, Estimate]:
    return tuple(
        estimate(read_json(root / f"{n}" / "eval.json", "evaluation")["score"])
        for n in ("04_evaluate_sft", "05_evaluate_ppo")
    )  # type: ignore[return-value]


def test_the_demo_makes_every_file_it_promises(tmp_path: Path) -> None:
    plain = compose(["+experiment=catch_demo", *SMALL])
    build({**plain, "out": str(tmp_path / "demo")}).run()
    for folder, name in FILES.items():
        assert (tmp_path / "demo" / folder / name).exists(), f"{folder}/{name}"
    html = (tmp_path / "demo" / "report.html").read_text()
    for words in ("PPO", "SFT", "train/score", "sft/val_accuracy", "data:video/mp4"):
        assert words in html


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_ppo_beats_sft_with_disjoint_intervals(tmp_path: Path, seed: int) -> None:
    plain = compose(["+experiment=catch_demo", f"seed={seed}"])
    build({**plain, "out": str(tmp_path / "demo")}).run()
    sft, ppo = scores(tmp_path / "demo")
    assert sft.n == ppo.n >= 100
    assert ppo.low > sft.high, f"SFT {sft}, PPO {ppo}"
