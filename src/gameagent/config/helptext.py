"""The text of `--help`: experiments, groups and the commands typed most, without importing Hydra.

print(text("python run.py"))
"""

from __future__ import annotations

from pathlib import Path

from gameagent.config.sources import conf_folders, experiments, sweeps

COMMANDS = (
    ("", "train catch by PPO"),
    ("+experiment=NAME", "run one of the experiments below"),
    ("+experiment=NAME learner.lr=1e-4 seed=3", "…with changed values"),
    ("learner=sft policy/encoder=mlp", "choose a component of a group"),
    (
        "--config-path RUN job=evaluate job.policy=RUN",
        "score what a run trained, in its own environment; RUN: outputs/…",
    ),
    ("-m seed=1,2,3 learner.lr=1e-4,1e-3", "one run for every combination"),
    ("-m +sweeps=NAME +experiment=NAME", "one of the sweeps below"),
    ("job.resume=RUN", "go on with a stopped run"),
    ("--config-path RUN --config-name config seed=4", "the same run once more, with another seed"),
    ("--cfg job +experiment=NAME", "print the configuration, run nothing"),
    ("job=doctor", "what works on this machine, and what to type where it doesn't"),
)


def text(program: str, config_dir: Path | str | None = None) -> str:
    """The whole page. `program` is what stands before the arguments."""
    parts = [
        f"{program} [group=option …] [key=value …] [-m]",
        _section("Commands", [(f"{program} {args}".rstrip(), what) for args, what in COMMANDS]),
        _section("Experiments (+experiment=NAME)", experiments(config_dir)),
        _section("Sweeps (-m +sweeps=NAME)", sweeps()),
        _section("Groups (group=option); their files in conf/ explain every key", _groups(config_dir)),
        "Any key of the printed configuration can be set: key=value. Files of your own join with --config-dir FOLDER,\n"
        "a class of your own with KEY._target_=./file.py:Class. --hydra-help lists Hydra's own flags.",
    ]
    return "\n\n".join(parts) + "\n"


def _section(title: str, rows: list[tuple[str, str]]) -> str:
    width = max((len(left) for left, _ in rows), default=0)
    lines = [f"  {left:<{width}}  {right}".rstrip() for left, right in rows] or ["  none"]
    return "\n".join([f"{title}:", *lines])


def _groups(config_dir: Path | str | None) -> list[tuple[str, str]]:
    found: dict[str, set[str]] = {}
    for folder in conf_folders(config_dir):
        for file in folder.path.rglob("*.yaml"):
            group = file.parent.relative_to(folder.path).as_posix()
            if group not in (".", "experiment"):
                found.setdefault(group, set()).add(file.stem)
    return [(group, ", ".join(sorted(names))) for group, names in sorted(found.items())]
