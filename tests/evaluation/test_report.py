"""report.html: complete, self-contained, and rendered without complaint by a real browser."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tests.evaluation.fakes import LotteryCore, normal_results, write_curve

from gameagent.evaluation import report as report_module
from gameagent.evaluation.report import duration, write_report
from gameagent.evaluation.run_folder import read_run
from gameagent.evaluation.summary import compare, summarise, write_json
from gameagent.evaluation.video import write_video
from gameagent.nets.encoders import Mlp
from gameagent.policies.actor_critic import ActorCritic
from gameagent.policies.bundle import save_policy

QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
]


def stage(root: Path, name: str, state: str = "finished", **told: object) -> Path:
    folder = root / name
    content = {"state": state, "seconds": 12.5, "files": [{"name": "policy.safetensors", "bytes": 123456}], **told}
    write_json(folder / "stage.json", content)
    (folder / "config.yaml").write_text(f"name: {name}\nnote: <script>alert(1)</script>\n")
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """What a small pipeline leaves behind."""
    root = tmp_path / "my_demo" / "2026-01-31_12-00-00"
    a, b = (summarise(normal_results(m, seed=m), player=p, mode="argmax") for m, p in ((15, "SFT"), (27, "PPO")))
    torch.manual_seed(0)
    policy = ActorCritic(encoder=Mlp()).build(LotteryCore.space, LotteryCore.actions)
    sft = stage(root, "01_sft", headline="accuracy 0.9")
    save_policy(sft / "policy.safetensors", policy, provenance={"git_commit": "abc123", "config": {"big": 1}})
    ppo = stage(root, "02_ppo")
    steps = range(0, 100_000, 2048)
    write_curve(ppo / "metrics.csv", {"train/score": [float(s % 7) for s in steps], "loss/value": [1.0] * 49}, steps)
    write_json(stage(root, "03_evaluate_sft") / "eval.json", a)
    write_json(stage(root, "04_evaluate_ppo") / "eval.json", b)
    write_json(stage(root, "05_compare") / "compare.json", compare(a, b))
    frames = (np.full((48, 64, 3), i * 20 % 255, np.uint8) for i in range(30))
    write_video(stage(root, "06_record") / "video.mp4", frames, 30)
    stage(root, "06_record~1", headline="set aside")
    stage(root, "07_broken", state="running", headline="broken off")
    return root


class Links(HTMLParser):
    """Collects what a page could load, and checks that its tags nest."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [v or "" for k, v in attrs if k in ("src", "href", "poster", "data", "action")]
        if tag not in ("meta", "link", "br", "source", "line", "circle", "rect", "polyline"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()


def test_the_report_tells_verdict_scores_stages_curves_and_origin(run: Path) -> None:
    html = write_report(run).read_text()
    for words in (
        "<h1>my_demo</h1>",
        "PPO scores",
        "PPO against SFT, seed by seed",
        "train/score",
        "accuracy 0.9",
        "policy.safetensors (123kB)",
        "abc123",
        "12.5 s",
        "2000000 to 2000039",
    ):
        assert words in html
    assert "set aside" not in html
    assert "broken off" not in html


def test_nothing_is_loaded_from_anywhere_and_nothing_runs(run: Path) -> None:
    html = write_report(run).read_text()
    links = Links()
    links.feed(html)
    assert links.found
    assert all(link.startswith("data:") for link in links.found)
    assert links.open == [], "every tag is closed"
    assert "<script" not in html, "a configuration's text is escaped"
    assert "default-src 'none'" in html
    assert "url(" not in html
    assert "@import" not in html


def test_a_large_video_is_named_and_not_embedded(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_module, "VIDEO_LIMIT", 10)
    html = write_report(run).read_text()
    assert "06_record/video.mp4" in html
    assert "data:video" not in html


def test_a_plain_run_is_its_own_only_stage(tmp_path: Path) -> None:
    root = tmp_path / "catch_ppo" / "time"
    write_curve(root / "metrics.csv", {"train/return": [1.0, 2.0]}, [10, 20])
    found = read_run(root)
    assert list(found.curves) == ["time"]
    assert "train/return" in write_report(root, tmp_path / "elsewhere" / "r.html").read_text()
    assert not (root / "report.html").exists()


def test_nothing_to_report_and_no_folder_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds nothing to report"):
        write_report(tmp_path)
    with pytest.raises(FileNotFoundError, match="is no run folder; give one under outputs/"):
        write_report(tmp_path / "nowhere")


def test_a_damaged_file_is_named(run: Path) -> None:
    (run / "03_evaluate_sft" / "eval.json").write_text("{")
    with pytest.raises(ValueError, match=r"03_evaluate_sft/eval\.json is no evaluation"):
        write_report(run)


@pytest.mark.parametrize(("seconds", "text"), [(3.21, "3.2 s"), (59.9, "59.9 s"), (125, "2 min 5 s")])
def test_durations_are_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def browse(chromium: str, page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [chromium, *QUIET, f"--user-data-dir={page.parent / 'profile'}", *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def test_a_real_browser_renders_it_without_complaint(run: Path, require: Callable[[str], str]) -> None:
    chromium, page = require("chromium"), write_report(run)
    seen = browse(chromium, page, "--dump-dom")
    assert "CONSOLE" not in seen.stderr, "no blocked request, no script error"
    dom = seen.stdout
    assert len(re.findall(r"<svg", dom)) == 4
    assert "PPO scores" in dom
    shot = run / "report.png"
    browse(chromium, page, "--window-size=1200,900", f"--screenshot={shot}")
    picture = np.asarray(Image.open(shot).convert("RGB")).astype(int)
    assert picture.shape[:2] == (900, 1200)
    colours = np.unique(picture.reshape(-1, 3), axis=0)
    assert len(colours) > 100, "text, charts and the video's poster are drawn"
    blue, orange = (np.abs(picture - c).sum(-1).min() for c in ((0x2F, 0x6F, 0xDE), (0xD9, 0x63, 0x2B)))
    assert max(blue, orange) < 30, "both players have their colour"


def test_the_stage_record_survives_its_json(run: Path) -> None:
    found = read_run(run)
    assert [s.name for s in found.stages] == ["sft", "ppo", "evaluate_sft", "evaluate_ppo", "compare", "record"]
    assert found.provenance["sft"] == {"git_commit": "abc123"}
    assert json.loads((run / "01_sft" / "stage.json").read_text())["seconds"] == found.stages[0].seconds
