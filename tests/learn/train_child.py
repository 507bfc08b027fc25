"""A training run in a process of its own, to be killed: `python train_child.py RUN_FOLDER TOTAL_STEPS [SECONDS]`.

SECONDS makes every iteration that much longer. Goes on from the run folder's checkpoint where it has one.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.learn.fakes import FakeEnv, experiment

from gameagent.errors import Interrupted
from gameagent.learn.ppo import PPO, PPOModule

if __name__ == "__main__":
    out, total, pause = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
    whole = PPOModule.training_step

    def slowly(self: PPOModule, batch: int, batch_idx: int) -> None:
        whole(self, batch, batch_idx)
        time.sleep(pause)

    PPOModule.training_step = slowly  # type: ignore[method-assign]
    learner = PPO(total_steps=total, rollout_steps=8, minibatch_size=16, epochs=2, ema_decay=0.9)
    out.mkdir(parents=True, exist_ok=True)
    print("started", flush=True)
    try:
        experiment(out, learner=learner, env=FakeEnv(bonus=1.0, limit=13), resume=str(out)).run()
    except Interrupted as e:
        print(e, flush=True)
        sys.exit(128 + e.signum)
