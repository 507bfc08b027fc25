"""What a component's field takes, in words, and what is wrong with a value that was given for it.

takes(PPO, "lr", "learner.lr") -> "a number > 0"
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Len, Lt, MaxLen, MinLen, MultipleOf

from gameagent.component import is_component
from gameagent.config.sources import options

_PLAIN = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    NoneType: "null",
    dict: "a mapping",
    list: "a list",
    tuple: "a list",
}
_BOUNDS = {
    Gt: ("gt", ">"),
    Ge: ("ge", ">="),
    Lt: ("lt", "<"),
    Le: ("le", "<="),
    MultipleOf: ("multiple_of", "multiple of"),
}


def takes(cls: type[Any], name: str, key: str) -> str:
    """What field `name` of a component class takes. `key` is its full path; it tells a nested component's group."""
    field = cls.__pydantic_fields__[name]
    return _type(field.annotation, list(field.metadata), key)


def _type(annotation: Any, metadata: list[Any], key: str) -> str:
    """In words, e.g. `a number >= 0 and < 1, or null`."""
    if hasattr(annotation, "__metadata__"):
        return _type(annotation.__origin__, [*annotation.__metadata__, *metadata], key)
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        parts = [_type(arg, metadata if arg is not NoneType else [], key) for arg in args]
        return ", or ".join(dict.fromkeys(parts))
    if origin is Literal:
        return _one_of([str(arg) for arg in args])
    if origin in (tuple, list):
        if origin is tuple and Ellipsis not in args:
            return f"a list of {len(args)}: {', '.join(_type(arg, [], key) for arg in args)}"
        return f"a list, each {_type(args[0], [], key)}{_bounds(metadata)}"
    if origin is dict:
        return f"a mapping of names, each to {_type(args[1], [], key)}"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _one_of([str(member.value) for member in annotation])
    if annotation in _PLAIN:
        return _PLAIN[annotation] + _bounds(metadata)
    if annotation is Any or not isinstance(annotation, type):
        return "anything" if annotation is Any else str(annotation)
    known = options(group_of(key))
    hint = f" ({group_of(key)}={'|'.join(known)})" if known else ""
    return f"a component of kind {annotation.__name__}{hint}"


def group_of(key: str) -> str:
    """The config group of a key: `policy/encoder`, and `logger` for `logger.csv`."""
    group = key.replace(".", "/")
    return group if options(group) else group.rpartition("/")[0]


def _one_of(members: list[str]) -> str:
    return f"one of {', '.join(members)}"


def _bounds(metadata: list[Any]) -> str:
    texts = []
    for item in _flat(metadata):
        for kind, (name, sign) in _BOUNDS.items():
            if isinstance(item, kind):
                texts.append(f"{sign} {getattr(item, name)}")
        if isinstance(item, MinLen | Len) and item.min_length:
            texts.append(f"at least {item.min_length} long")
        if isinstance(item, MaxLen | Len) and item.max_length is not None:
            texts.append(f"at most {item.max_length} long")
    return f" {' and '.join(texts)}" if texts else ""


def _flat(metadata: list[Any]) -> list[Any]:
    """pydantic's `Field(...)` inside nested annotations carries its constraints in a list of its own."""
    return [part for item in metadata for part in [item, *getattr(item, "metadata", [])]]


def wrong_value(cls: type[Any], name: str, key: str, error: Mapping[str, Any]) -> str:
    """One pydantic error of a field, in words: what was given, what it takes, what to type."""
    given = error["input"]
    inner = [str(part) for part in error["loc"][1:] if isinstance(part, int) or error["type"] == "is_instance_of"]
    full = ".".join([key, *inner])
    needs = takes(cls, name, key)
    if error["type"] == "finite_number":
        needs = f"a finite one, {needs}"
    if error["type"] == "value_error":
        return f"{full}: got {shown(given)}; {error['ctx']['error']}"
    if isinstance(given, str) and (
        near := get_close_matches(given.lower(), needs.removeprefix("one of ").split(", "), n=1)
    ):
        needs = f"{needs}; did you mean {near[0]!r}?" if needs.startswith("one of ") else needs
    if isinstance(given, str) and "a component of kind" in needs and given in options(group_of(key)):
        needs = f"{needs}; type {group_of(key)}={given}"
    return f"{full}: got {shown(given)}; it takes {needs}"


def shown(value: Any) -> str:
    """A value as an error shows it: short, with its type where that may be what is wrong."""
    if is_component(type(value)):
        return f"the component {type(value).__name__} ({type(value).__module__})"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    text = repr(value)
    text = text if len(text) <= 80 else f"{text[:77]}..."
    return f"the text {text}" if isinstance(value, str) else text
