"""Every metric that a run may log, with its meaning: the reference page and the loggers' names come from this table.

METRICS["ppo/kl"]
"""

from __future__ import annotations

METRICS: dict[str, str] = {
    "env_steps": "environment steps learned from so far (after frame skip); the x axis of every log",
    "env_frames": "emulated frames played so far: env_steps times frames per step",
    "train/return": "shaped reward summed over an episode, mean of the last 100 finished ones",
    "train/score": "the game's own score at the end of an episode, mean of the last 100; rewards don't enter",
    "train/length": "environment steps of an episode, mean of the last 100",
    "train/episodes": "episodes finished so far",
    "train/reward/<term>": "one term of the reward summed over an episode, mean of the last 100",
    "loss/total": "what is minimised: policy loss + value_coef · value loss − entropy_coef · entropy",
    "loss/policy": "clipped surrogate objective, negated; mean over the iteration's updates",
    "loss/value": "squared error of the value estimate (the clipped one with value_clip), before value_coef",
    "loss/entropy": "entropy of the action distribution in nats, summed over heads; falls as the policy decides itself",
    "ppo/kl": "exact KL(old || new) in nats between the policy that played and the one being updated",
    "ppo/clip_fraction": "share of samples whose probability ratio left [1 − clip, 1 + clip]",
    "ppo/lr": "learning rate at the end of the iteration",
    "ppo/entropy_coef": "weight of the entropy bonus in this iteration",
    "ppo/explained_variance": "1 − Var(return − value)/Var(return): 1 is a perfect critic, 0 or less a useless one",
    "ppo/grad_norm_actor": "gradient norm of the actor before clipping, mean over updates",
    "ppo/grad_norm_critic": "gradient norm of the critic before clipping, mean over updates",
    "ppo/updates": "optimiser steps made in this iteration; fewer than planned once target_kl stopped it",
    "ppo/skipped_updates": "updates left out so far because loss or gradient was not finite",
    "ppo/nonfinite": "NaN or infinite rewards and observations replaced by 0 so far",
    "time/steps_per_second": "environment steps per second of this iteration, learning included",
    "time/frames_per_second": "the same in emulated frames",
    "sft/loss": "cross-entropy in nats on the training split",
    "sft/val_loss": "cross-entropy in nats on the held-out split",
    "sft/val_accuracy": "share of held-out samples whose most likely action is the demonstrated one",
    "sft/val_accuracy/<head>": "the same for one head of the action",
    "sft/majority_accuracy": "accuracy of always answering the training split's most frequent action: the bar to beat",
}
