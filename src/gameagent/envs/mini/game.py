"""`Game`: one mini-game file, loaded and checked. docs/my-own-game.md shows how to write one.

game = load_game("catch")            # built in
game = load_game("./my_game.py")     # your own
"""

from __future__ import annotations

import ast
import difflib
import importlib.util
import inspect
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from gameagent.contract import ActionSpace, ContractError
from gameagent.errors import EnvError

HERE = Path(__file__).parent
BUILT_IN = ("catch",)
"""Games that ship with gameagent, by file name."""
HOOKS = {
    "reset": ("s", "cfg", "rng"),
    "step": ("s", "*heads", "cfg", "rng"),
    "render": ("s", "img", "cfg"),
    "signals": ("s", "out", "cfg"),
    "features": ("s", "out", "cfg"),
    "expert": ("s", "cfg"),
    "text": ("s", "cfg"),
    "reward": ("ctx",),
}
"""Every hook and its parameters; `*heads` stands for one whole number per action head."""
REQUIRED = ("reset", "step", "render", "signals")
_TAKEN = {name for name in dir(np.record) if not name.startswith("_")}
"""Attributes that a record has anyway (size, flags, …): a field of that name could not be read in plain Python."""
_LOADING = threading.RLock()
Knob = bool | int | float


class GameError(EnvError):
    """A game file, or a setting of a game, is wrong; the message says what to change."""


@dataclass(frozen=True)
class Game:
    """What a game file says."""

    name: str
    path: Path
    sources: tuple[Path, ...]
    """The game file and the files of its own folder that it imports: what a compiled kernel depends on."""
    module: ModuleType
    actions: ActionSpace
    state: np.dtype[Any]
    """Layout of one env's state record."""
    signals: tuple[str, ...]
    features: tuple[str, ...]
    config: dict[str, Knob]
    """Knobs and their defaults."""
    limits: dict[str, tuple[float, float]]
    """Lowest and highest value of those knobs that have bounds."""
    size: tuple[int, int]
    """Height and width of the picture."""
    max_steps: int | None
    keymap: dict[str, tuple[str, str]]
    """Keyboard key -> (head, label), for people who play."""
    max_chars: int

    def hook(self, name: str) -> Callable[..., Any] | None:
        """The plain Python hook of that name, or None."""
        return getattr(self.module, name, None)

    def knobs(self, given: Mapping[str, Knob]) -> dict[str, Knob]:
        """All knobs, with `given` over the defaults. Raises GameError for an unknown name, wrong type or bad value."""
        for name, value in given.items():
            if name not in self.config:
                close = difflib.get_close_matches(name, self.config, 1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise GameError(f"knobs: {self.name} has no {name!r}{hint} It has {_listed(self.config)}")
            default = self.config[name]
            whole = isinstance(value, float) and value.is_integer()
            if isinstance(default, bool) != isinstance(value, bool) or (
                isinstance(default, int) and isinstance(value, float) and not whole
            ):
                raise GameError(f"knobs.{name}: {value!r} is no {type(default).__name__} (the default is {default!r})")
            low, high = self.limits.get(name, (-np.inf, np.inf))
            if not low <= value <= high:
                raise GameError(f"knobs.{name}: {value!r} is out of range; {self.name} allows {low} to {high}")
        return {name: type(default)(given.get(name, default)) for name, default in self.config.items()}


_LOADED: dict[tuple[Path, ...], tuple[tuple[bytes, ...], Game]] = {}


def load_game(name: str) -> Game:
    """Load a built-in game by name, or a game file by path; once, until one of its files changes.

    Raises:
        GameError: no such game, or the file breaks a rule of mini-games.
    """
    path = _find(name)
    with _LOADING:
        sources = local_sources(path)
        stamp = tuple(source.read_bytes() for source in sources)
        known = _LOADED.get(sources)
        if known is None or known[0] != stamp:
            known = _LOADED[sources] = (stamp, _checked(path, sources, _import(path, sources)))
        return known[1]


def _find(name: str) -> Path:
    if name in BUILT_IN:
        return HERE / f"{name}.py"
    path = Path(name).expanduser()
    if path.suffix == ".py" and path.is_file():
        return path.resolve()
    if path.suffix == ".py":
        raise GameError(f"game: there is no file {name} (looked at {path.resolve()})")
    close = difflib.get_close_matches(name, BUILT_IN, 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise GameError(f"game: {name!r} is unknown{hint} Built in: {_listed(BUILT_IN)}; or give a file, ./my_game.py")


def local_sources(path: Path) -> tuple[Path, ...]:
    """A game file and the files next to it that it imports, directly or through each other; none of them is run."""
    found, queue = [path], [path]
    while queue:
        for name in _imports(queue.pop()):
            for candidate in (path.parent / f"{name}.py", path.parent / name / "__init__.py"):
                if candidate.is_file() and candidate not in found:
                    found.append(candidate)
                    queue.append(candidate)
    return tuple(found)


def _imports(path: Path) -> set[str]:
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except SyntaxError as e:
        raise GameError(f"{path.name}, line {e.lineno}: {e.msg}") from None
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    own = f"{__package__}."
    return {name.removeprefix(own).split(".")[0] for name in names}


def _import(path: Path, sources: Sequence[Path]) -> ModuleType:
    """Run the file as a module of its own. Helper modules beside it are loaded afresh and not left in sys.modules."""
    if path.parent == HERE:
        return importlib.import_module(f"{__package__}.{path.stem}")
    helpers = {s.parent.name if s.name == "__init__.py" else s.stem for s in sources[1:]}
    hidden = {n: sys.modules.pop(n) for n in list(sys.modules) if n.split(".")[0] in helpers}
    spec = importlib.util.spec_from_file_location(f"gameagent_game_{path.stem}", path)
    assert spec is not None, path
    assert spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as e:
        raise GameError(f"{path.name} cannot be imported: {type(e).__name__}: {e}") from e
    finally:
        sys.path.remove(str(path.parent))
        for name in [n for n in sys.modules if n.split(".")[0] in helpers]:
            del sys.modules[name]
        sys.modules.update(hidden)
    return module


def _checked(path: Path, sources: tuple[Path, ...], module: ModuleType) -> Game:
    get = vars(module).get
    for constant in ("ACTIONS", "STATE", "SIGNALS"):
        if get(constant) is None:
            raise GameError(f"{path.name} has no {constant}; every game names its ACTIONS, STATE and SIGNALS")
    try:
        actions = ActionSpace(get("ACTIONS"))
    except (ContractError, AttributeError, TypeError) as e:
        raise GameError(f"{path.name}: ACTIONS is head -> labels, such as {{'move': ('left', 'right')}}: {e}") from None
    _check_hooks(path, module, actions)
    features = tuple(get("FEATURES", ()))
    if bool(features) != callable(get("features")):
        raise GameError(
            f"{path.name}: FEATURES (names) and the hook features(s, out, cfg) belong together; one is missing"
        )
    game = Game(
        name=path.stem,
        path=path,
        sources=sources,
        module=module,
        actions=actions,
        state=_state_layout(path, get("STATE")),
        signals=tuple(get("SIGNALS", ())),
        features=features,
        config=dict(get("CONFIG", {})),
        limits={name: (low, high) for name, (low, high) in get("LIMITS", {}).items()},
        size=tuple(get("SIZE", (112, 112))),
        max_steps=get("MAX_STEPS"),
        keymap=dict(get("KEYMAP", {})),
        max_chars=int(get("MAX_CHARS", 1000)),
    )
    _check_constants(game)
    return game


def _check_hooks(path: Path, module: ModuleType, actions: ActionSpace) -> None:
    for hook, pattern in HOOKS.items():
        wanted = [n for p in pattern for n in (actions.heads if p == "*heads" else (p,))]
        line = f"def {hook}({', '.join(wanted)}):"
        found = getattr(module, hook, None)
        if found is None:
            if hook in REQUIRED:
                raise GameError(f"{path.name} has no hook {hook!r}; write\n    {line}")
        elif not inspect.isfunction(found) or len(inspect.signature(found).parameters) != len(wanted):
            given = f"def {hook}{inspect.signature(found)}:" if inspect.isfunction(found) else f"{hook} = {found!r}"
            where = f", line {found.__code__.co_firstlineno}" if inspect.isfunction(found) else ""
            raise GameError(f"{path.name}{where}: the hook {hook!r} is\n    {given}\nbut is called as\n    {line}")


def _state_layout(path: Path, fields: Any) -> np.dtype[Any]:
    try:
        layout = np.dtype([tuple(f) for f in fields], align=True)
    except (TypeError, ValueError) as e:
        raise GameError(f"{path.name}: STATE is a list of (name, type) or (name, type, length): {e}") from None
    for name in layout.names or ():
        base = layout[name].base
        if base not in (np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_)):
            raise GameError(
                f"{path.name}: STATE field {name!r} is {base}; use float, int or bool (float64, int64, bool): "
                f"with shorter numbers a compiled game and one in the debugger would part ways"
            )
    # Numba has no arrays of bool inside a record; whole numbers 0 and 1 behave the same in a game.
    kinds = {
        n: np.dtype((np.int64, layout[n].shape)) if _is_flags(layout[n]) else layout[n] for n in layout.names or ()
    }
    return np.dtype(list(kinds.items()), align=True)


def _is_flags(field: np.dtype[Any]) -> bool:
    return field.base == np.dtype(np.bool_) and bool(field.shape)


def _check_constants(game: Game) -> None:
    where = game.path.name
    named = {"STATE": game.state.names or (), "SIGNALS": game.signals, "CONFIG": tuple(game.config)}
    for constant, names in named.items():
        if taken := sorted(set(names) & _TAKEN):
            raise GameError(f"{where}: {constant} names {taken[0]!r}, which numpy's records use; choose another name")
    bad = [k for k, v in game.config.items() if not isinstance(v, bool | int | float)]
    if bad:
        raise GameError(f"{where}: CONFIG values are numbers or true/false; {bad[0]!r} is {game.config[bad[0]]!r}")
    if unknown := set(game.limits) - set(game.config):
        raise GameError(f"{where}: LIMITS name {sorted(unknown)}, which CONFIG lacks; it has {_listed(game.config)}")
    if not game.signals or len(set(game.signals)) != len(game.signals):
        raise GameError(f"{where}: SIGNALS needs one or more different names, got {game.signals}")
    for key, (head, label) in game.keymap.items():
        if label not in game.actions.heads.get(head, ()):
            raise GameError(f"{where}: KEYMAP[{key!r}] is {(head, label)}, but the heads are {game.actions.heads}")


def _listed(names: Any) -> str:
    return ", ".join(map(str, names)) or "none"
