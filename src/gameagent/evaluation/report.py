"""report.html: one file that shows what a run did, to be sent around; no script, no request to anywhere.

write_report("outputs/catch_demo/…")    # a run folder, or a pipeline's with its stages
"""

from __future__ import annotations

import base64
import platform
from collections.abc import Sequence
from datetime import datetime
from html import escape
from importlib.metadata import version
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any

import av
import numpy as np
from PIL import Image

from gameagent.contract import FloatArray
from gameagent.evaluation.charts import Row, curve_chart, differences_chart, intervals_chart, short
from gameagent.evaluation.curves import Curves
from gameagent.evaluation.run_folder import Run, read_run
from gameagent.evaluation.summary import estimate, headline, verdict
from gameagent.files import replacing

VIDEO_LIMIT = 3_000_000
"""Bytes up to which a video is embedded; larger ones are named."""
_HEADLINE_CURVES = ("train/score", "train/return", "sft/val_accuracy", "sft/val_loss")
"""Shown wide, the first that a stage has."""
_TELLING_CURVES = ("loss/", "ppo/kl", "ppo/clip_fraction", "ppo/explained_variance", "train/", "sft/", "ppo/")
"""Beginnings of the names of further curves, the most telling first; those that stay constant come last."""
_CURVES_SHOWN = 9
"""Further curves of a stage that are shown without unfolding."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:"
"""Content security policy: even a damaged input could not make a browser fetch anything."""
_AGAIN = "python run.py --config-path FOLDER --config-name config"


def write_report(run_dir: str | Path, target: str | Path | None = None) -> Path:
    """Make a report of what lies in a run folder. Returns its path.

    Args:
        run_dir: the run's folder.
        target: the HTML file; None for report.html in that folder.

    Raises:
        FileNotFoundError: no such folder.
        ValueError: a file in it is damaged, or there is nothing to report.
    """
    run = read_run(run_dir)
    if not (run.stages or run.evaluations or run.comparisons or run.curves or run.videos):
        raise ValueError(
            f"{run.path} holds nothing to report: no metrics.csv, eval.json, compare.json, video or stages"
        )
    target = run.path / "report.html" if target is None else Path(target)
    with replacing(target) as part:
        part.write_text(render(run), encoding="utf-8")
    return target


def render(run: Run) -> str:
    """The page."""
    css = (files("gameagent.evaluation") / "report.css").read_text(encoding="utf-8")
    sections = [_hero(run), _scores(run), _comparisons(run), _learning(run), _stages(run), _origins(run), _configs(run)]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{escape(run.name)} · gameagent report</title>"
        f'<link rel="icon" href="data:,"><style>{css}</style></head><body><main>'
        + "\n".join(filter(None, sections))
        + f"<footer>Made by gameagent {version('gameagent')} · one file, nothing is loaded from anywhere.</footer>"
        "</main></body></html>\n"
    )


def _hero(run: Run) -> str:
    when = datetime.fromtimestamp(run.path.stat().st_mtime).strftime("%d %B %Y, %H:%M")
    told = [verdict(c) for c in run.comparisons] or [headline(s) for s in run.evaluations[:1]]
    words = "".join(f'<p class="verdict">{escape(_sentence(t))}</p>' for t in told)
    tiles = "".join(_tile(s) for s in run.evaluations)
    if run.stages:
        seconds = sum(s.seconds for s in run.stages)
        tiles += (
            f'<div class="tile"><b>{seconds / 60:.1f}</b><span>minutes<br>for {len(run.stages)} stages</span></div>'
        )
    video = _video(run)
    return (
        f'<header><h1>{escape(run.name)}</h1><p class="quiet">{when} · {escape(_machine())}</p></header>'
        f'<section class="card hero{"" if video else " alone"}"><div>{words}<div class="tiles">{tiles}</div></div>'
        f"{video}</section>"
    )


def _tile(summary: dict[str, Any]) -> str:
    e = estimate(summary["score"])
    interval = f"{e.low:.1f} to {e.high:.1f}" if e.low == e.low else "one episode"
    return f'<div class="tile"><b>{e.value:.1f}</b><span>{escape(summary["player"])}<br>{interval}</span></div>'


def _video(run: Run) -> str:
    if not run.videos:
        return ""
    path = run.videos[-1]
    name, size = path.relative_to(run.path), path.stat().st_size
    if size > VIDEO_LIMIT:
        return f"<p>The video is beside this report: <code>{escape(str(name))}</code> ({short(size)}B).</p>"
    data = base64.b64encode(path.read_bytes()).decode()
    return (
        f'<figure><video controls loop muted autoplay playsinline poster="{_poster(path)}">'
        f'<source type="video/mp4" src="data:video/mp4;base64,{data}"></video>'
        f"<figcaption>{escape(str(name))}</figcaption></figure>"
    )


def _poster(path: Path) -> str:
    """A picture from the first second or so: what stands there before a video plays, and on paper."""
    picture = BytesIO()
    with av.open(str(path)) as container:
        for i, frame in enumerate(container.decode(video=0)):
            if i in (0, 60):
                picture = BytesIO()
                Image.fromarray(frame.to_ndarray(format="rgb24")).save(picture, "JPEG", quality=85)
            if i == 60:
                break
    return f"data:image/jpeg;base64,{base64.b64encode(picture.getvalue()).decode()}"


def _scores(run: Run) -> str:
    if not run.evaluations:
        return ""
    rows = [
        Row(s["player"], estimate(s["score"]), tuple(r["score"] for r in s["rows"]), s["mode"]) for s in run.evaluations
    ]
    head = ["player", "mode", "episodes", "mean score", "middle half", "median", "lowest", "highest", "steps"]
    cells = [_score_cells(s) for s in run.evaluations]
    if any(s["win_rate"] is not None for s in run.evaluations):
        head.append("wins")
        for row, s in zip(cells, run.evaluations, strict=True):
            row.append("" if s["win_rate"] is None else f"{100 * s['win_rate']['value']:.0f} %")
    seeds = sorted({(s["seeds"][0], s["seeds"][-1]) for s in run.evaluations})
    which = "; ".join(f"{a} to {b}" for a, b in seeds)
    level = f"{100 * run.evaluations[0]['score']['level']:g} %"
    return _card(
        "Score",
        f'<p class="quiet">One dot an episode on held-out seeds {which}; bars are {level} bootstrap intervals of the '
        f"mean.</p>{intervals_chart(rows)}{_table(head, cells)}",
    )


def _score_cells(summary: dict[str, Any]) -> list[str]:
    score = summary["score"]
    means = [str(estimate(score)), str(estimate(score["interquartile_mean"]))]
    spread = [f"{score[name]:g}" for name in ("median", "min", "max")]
    return [
        summary["player"],
        summary["mode"],
        str(summary["episodes"]),
        *means,
        *spread,
        f"{summary['length']['value']:.0f}",
    ]


def _comparisons(run: Run) -> str:
    parts = []
    for c in run.comparisons:
        d = np.array([row["b"] - row["a"] for row in c["rows"]])
        facts = [
            ("mean difference", str(estimate(c["difference"]))),
            ("seeds won, tied, lost", f"{c['wins']}, {c['ties']}, {c['losses']}"),
            ("chance of scoring more on a seed", f"{100 * c['probability_of_improvement']:.0f} %"),
            ("permutation test", _p(c["p_value"])),
            ("sign test", _p(c["sign_p_value"])),
            ("intervals of the two means", "overlap" if c["intervals_overlap"] else "are disjoint"),
            *(("environments differ in", line) for line in c["env_differences"]),
        ]
        title = f"{escape(c['b']['player'])} against {escape(c['a']['player'])}, seed by seed"
        parts.append(_card(title, differences_chart(d, estimate(c["difference"])) + _table((), facts)))
    return "\n".join(parts)


def _learning(run: Run) -> str:
    parts = []
    for i, (stage, curves) in enumerate(run.curves.items()):
        if curves:
            parts.append(f"<h3>{escape(stage)}</h3>{_stage_curves(curves, i)}")
    note = '<p class="quiet">Over environment steps; faint as logged, strong the running mean.</p>'
    return _card("Learning", note + "".join(parts)) if parts else ""


def _stage_curves(curves: Curves, colour: int) -> str:
    first = next((n for n in _HEADLINE_CURVES if n in curves), next(iter(curves)))
    rest = sorted((n for n in curves if n != first), key=lambda n: (_rank(n, curves[n][1]), n))
    small = [curve_chart(n, *curves[n], colour=colour) for n in rest]
    shown, hidden = "".join(small[:_CURVES_SHOWN]), "".join(small[_CURVES_SHOWN:])
    more = f'<details><summary>{len(small) - _CURVES_SHOWN} more</summary><div class="curves">{hidden}</div></details>'
    return (
        curve_chart(first, *curves[first], colour=colour, wide=True)
        + f'<div class="curves">{shown}</div>'
        + (more if hidden else "")
    )


def _rank(name: str, values: FloatArray) -> tuple[bool, int]:
    places = [i for i, start in enumerate(_TELLING_CURVES) if name.startswith(start)]
    return bool((values == values[0]).all()), min(places, default=len(_TELLING_CURVES))


def _stages(run: Run) -> str:
    if not run.stages:
        return ""
    longest = max(s.seconds for s in run.stages) or 1.0
    rows = "".join(
        f'<tr><td><b>{escape(s.name)}</b></td><td class="number">{duration(s.seconds)}</td>'
        f'<td><span class="time" style="width:{120 * s.seconds / longest:.0f}px"></span></td>'
        f'<td class="wrap">{escape(s.headline)}</td>'
        f'<td class="wrap quiet">{", ".join(f"{escape(n)} ({short(size)}B)" for n, size in s.files)}</td></tr>'
        for s in run.stages
    )
    head = '<tr><th>stage</th><th class="number">time</th><th></th><th>result</th><th>files</th></tr>'
    return _card("Stages", f'<div class="scroll"><table>{head}{rows}</table></div>')


def _origins(run: Run) -> str:
    parts = [
        f"<h3>{escape(stage)}/policy.safetensors</h3>{_table((), sorted(told.items()))}"
        for stage, told in run.provenance.items()
        if told
    ]
    return _card("Where the policies come from", "".join(parts)) if parts else ""


def _configs(run: Run) -> str:
    parts = [
        f"<details><summary>{escape(stage)}</summary><pre>{escape(text)}</pre></details>"
        for stage, text in run.configs.items()
    ]
    note = f'<p class="quiet">Complete; to run one again: <code>{_AGAIN}</code></p>'
    return _card("Configuration", note + "".join(parts)) if parts else ""


def _card(title: str, body: str) -> str:
    return f'<section class="card"><h2>{title}</h2>{body}</section>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain table. Without a head it is a list of facts: names, and values that may take several lines."""
    top = "<tr>" + "".join(f"<th>{escape(h)}</th>" for h in head) + "</tr>" if head else ""
    body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in rows)
    kind = "" if head else ' class="facts"'
    return f'<div class="scroll"><table{kind}>{top}{body}</table></div>'


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def duration(seconds: float) -> str:
    """Seconds for people: `12.3 s`, `2 min 5 s`."""
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


def _machine() -> str:
    return f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
