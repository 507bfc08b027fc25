"""Where metrics go: `Csv`, `TensorBoard` and `Wandb`. The x axis of all of them is `env_steps`, an exact integer.

python run.py logger=[csv,wandb] logger.wandb.offline=false
"""

from __future__ import annotations

import csv
import io
import secrets
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import Logger, TensorBoardLogger
from lightning.pytorch.utilities import rank_zero_only

from gameagent.component import component
from gameagent.errors import UserError
from gameagent.learn.base import cannot_write
from gameagent.learn.trainer import LoggerSpec

STEP = "env_steps"
"""First column of metrics.csv and x axis everywhere."""


@component
class Csv(LoggerSpec):
    """metrics.csv in the run folder: one row a log, first column env_steps, columns added as metrics appear."""

    def build(self, *, run_dir: Path, name: str, config: dict[str, Any], resume_step: int | None) -> Logger:
        """The sink."""
        return CsvLogger(run_dir / "metrics.csv", resume_step)


class CsvLogger(Logger):
    """Appends rows to a CSV file that is whole at every moment but for its last line.

    Args:
        path: the file. An existing one is continued up to `resume_step`, or begun anew where that is None.
        resume_step: rows beyond it, and a last line that a crash cut short, are dropped.
    """

    def __init__(self, path: Path, resume_step: int | None) -> None:
        super().__init__()
        self.path = path
        self._columns = [STEP]
        path.parent.mkdir(parents=True, exist_ok=True)
        self._rewrite(self._rows(resume_step) if resume_step is not None and path.exists() else [])

    @property
    def name(self) -> str:
        """Kind of logger."""
        return "csv"

    @property
    def version(self) -> str:
        """Unused."""
        return ""

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Append one row."""
        unknown = [name for name in metrics if name not in self._columns]
        if unknown:
            rows = self._read()
            self._columns += sorted(unknown)
            self._rewrite(rows)
        row = {STEP: step, **{name: _short(x) for name, x in metrics.items()}}
        with self.path.open("a", encoding="utf-8", newline="") as file:
            file.write(_line([row.get(name, "") for name in self._columns]))

    @rank_zero_only
    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Nothing: config.yaml lies beside the file."""

    def _rows(self, resume_step: int) -> list[dict[str, str]]:
        """Whole rows up to a step; sets the columns."""
        rows = self._read()
        self._columns = list(rows[0]) if rows else [STEP]
        return [row for row in rows if int(row[STEP]) <= resume_step]

    def _read(self) -> list[dict[str, str]]:
        """Rows of the file but for a last line without its end."""
        text = self.path.read_text(encoding="utf-8")
        return list(csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1])))

    def _rewrite(self, rows: list[dict[str, str]]) -> None:
        """Put the file down anew, whole or not at all."""
        fresh = self.path.with_suffix(".tmp")
        lines = [_line(self._columns), *(_line([row.get(name, "") for name in self._columns]) for row in rows)]
        fresh.write_text("".join(lines), encoding="utf-8")
        fresh.replace(self.path)


def _line(cells: list[Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def _short(number: float) -> str:
    """Whole numbers exactly, others with seven significant digits (what float32 holds)."""
    return str(number) if isinstance(number, int) else f"{number:.7g}"


@component
class TensorBoard(LoggerSpec):
    """Event files in tensorboard/ of the run folder: `tensorboard --logdir outputs`."""

    def build(self, *, run_dir: Path, name: str, config: dict[str, Any], resume_step: int | None) -> Logger:
        """The sink."""
        purge = None if resume_step is None else resume_step + 1
        _hush_writer_thread()
        return EventLogger(save_dir=run_dir, name="tensorboard", version="", purge_step=purge)


class EventLogger(TensorBoardLogger):
    """Lightning's, with an error in words where the last events can't be written."""

    @rank_zero_only
    def finalize(self, status: str) -> None:
        """Write what is left. Raises UserError."""
        try:
            super().finalize(status)
        except OSError as e:
            raise cannot_write(str(self.name), self.save_dir, e) from e


def _hush_writer_thread() -> None:
    """Keep tensorboard's own thread from printing a traceback: what it couldn't write is raised at the next event."""
    before = threading.excepthook

    def hook(args: threading.ExceptHookArgs) -> None:
        if type(args.thread).__name__ != "_AsyncWriterThread" or not isinstance(args.exc_value, OSError):
            before(args)

    threading.excepthook = hook


@component
class Wandb(LoggerSpec):
    """Weights & Biases. Offline by default: nothing leaves this machine until `wandb sync` is typed."""

    project: str = "gameagent"
    """Project to log to."""
    entity: str | None = None
    """Team or user; null: your default."""
    group: str | None = None
    """What runs are grouped by; null: the experiment's name."""
    offline: bool = True
    """Write to the run folder only. false needs an account: type `wandb login` once."""

    def build(self, *, run_dir: Path, name: str, config: dict[str, Any], resume_step: int | None) -> Logger:
        """The sink. Raises UserError where wandb isn't installed."""
        try:
            import wandb
        except ImportError as e:
            raise UserError("logger=wandb needs the package wandb; type: pip install wandb") from e
        id_file = run_dir / "wandb_id.txt"
        if resume_step is None or not id_file.exists():
            id_file.parent.mkdir(parents=True, exist_ok=True)
            id_file.write_text(secrets.token_hex(4), encoding="utf-8")
        run = wandb.init(
            project=self.project,
            entity=self.entity,
            group=self.group or name,
            name=f"{name}-{run_dir.name}",
            id=id_file.read_text(encoding="utf-8").strip(),
            resume="allow" if resume_step is not None and not self.offline else None,
            mode="offline" if self.offline else "online",
            dir=run_dir,
            config=config,
        )
        return WandbLogger(run)


class WandbLogger(Logger):
    """Logs to one wandb run and finishes it at the end, so that the next job of a sweep gets its own."""

    def __init__(self, run: Any) -> None:
        super().__init__()
        self.run = run
        run.define_metric(STEP)
        run.define_metric("*", step_metric=STEP)

    @property
    def name(self) -> str:
        """Kind of logger."""
        return "wandb"

    @property
    def version(self) -> str:
        """Id of the run."""
        return str(self.run.id)

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log one row."""
        self.run.log({**metrics, STEP: step})

    @rank_zero_only
    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Nothing: the run got its config when it began."""

    @rank_zero_only
    def finalize(self, status: str) -> None:
        """End the run."""
        self.run.finish(exit_code=0 if status == "success" else 1)
