"""The settings of config.toml by name: `default_profile`, `profiles.NAME.base_url`, `reply.status`.

Everything here is read off the models in profiles.py, so that a setting exists in one place.
"""

import re
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from escrowctl.config.profiles import PROFILE_NAME, ConfigFile, Profile
from escrowctl.errors import EscrowctlError, bad_value

Value = str | int | float | bool | list[str]

SECRET_NAMES = frozenset({"api_key", "apikey", "api-key", "key", "token", "secret", "password", "bearer"})
"""Names under which people look for a place to put the key; there is none."""

USE_LOGIN = "escrowctl auth login asks for the key, or reads it from stdin"

_PROFILES = "profiles"


@dataclass(frozen=True, slots=True)
class Place:
    """A place in config.toml: its dotted name, what belongs there, and the names known beside it."""

    name: str
    expected: str
    known: tuple[str, ...]


def describe_place(location: Sequence[str | int]) -> Place:
    """Return the place that a validation error's location stands for."""
    model: type[BaseModel] | None = ConfigFile
    names: list[str] = []
    expected, known, in_mapping = "a table", tuple(ConfigFile.model_fields), False
    for part in location:
        if part == "[key]":
            break
        if in_mapping and isinstance(part, str):
            names.append(part)
            in_mapping = False
        elif model is not None:
            known = tuple(model.model_fields)
            names.append(str(part))
            field = model.model_fields.get(str(part))
            if field is None:
                break
            expected = field.description or expected
            in_mapping = get_origin(field.annotation) is dict
            model = Profile if part == _PROFILES else _model_of(field.annotation)
        else:
            break
    return Place(".".join(names), expected, known)


def profile_settings() -> tuple[str, ...]:
    """Return the names of a profile's settings, dotted, in the order of the model."""
    return tuple(name for name, _ in _leaves(Profile))


def find_default(name: str) -> object:
    """Return the built-in value of a profile's setting; None for one that has none, and for one in a table."""
    field = dict(_leaves(Profile)).get(name)
    return None if field is None or field.is_required() else field.get_default()


def parse_name(text: str, *, profile: str | None) -> tuple[str, ...]:
    """Return the path in config.toml of a setting that was typed; relative names are the profile's.

    Raises EscrowctlError (exit 2) for an unknown name, one that is a key's, and a relative one
    where no profile is chosen.
    """
    path = tuple(text.split("."))
    _refuse_secret(path)
    if path[0] in ConfigFile.model_fields and path[0] != _PROFILES:
        if len(path) > 1:
            raise _unknown(text)
        return path
    if path[0] == _PROFILES:
        if len(path) == 1 or not re.fullmatch(PROFILE_NAME, path[1]):
            raise bad_value(f'"{text}" names no profile: write profiles.NAME.SETTING.')
        rest = path[2:]
    else:
        rest = path
    if rest and not _is_known(rest):
        raise _unknown(".".join(rest))
    if path[0] == _PROFILES:
        return path
    if profile is None:
        raise bad_value(
            f'"{text}" is a setting of a profile, and none is chosen.',
            hint=(f"name it: escrowctl -p NAME config ... {text}", f"or write out profiles.NAME.{text}"),
        )
    return (_PROFILES, profile, *path)


def parse_value(path: Sequence[str], words: Sequence[str]) -> Value:
    """Return what was typed as the setting's own kind: text, true or false, a number, a list.

    Raises EscrowctlError (exit 2) where it cannot be one; whether the setting takes it, the models say.
    """
    annotation, expected = _kind_of(path)
    name = ".".join(path)
    if get_origin(annotation) is list:
        items = [item.strip() for word in words for item in word.split(",")]
        if not all(items):
            raise bad_value(f"{name} should be {expected}: one of the words is empty.")
        return items
    if len(words) != 1:
        raise bad_value(f"{name} takes one value, not {len(words)}: quote a value with spaces.")
    value = _read(annotation, words[0])
    if value is None:
        raise bad_value(f'{name} should be {expected.removesuffix(", without quotes")}, not "{words[0]}".')
    return value


def _read(annotation: Any, word: str) -> Value | None:
    if annotation is bool:
        return {"true": True, "false": False}.get(word)
    members = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    if str in members or get_origin(annotation) is Literal:
        return word
    if re.fullmatch(r"-?[0-9]{1,18}", word, re.ASCII):
        return int(word)
    if float in members and re.fullmatch(r"[0-9]{1,18}\.[0-9]{1,18}", word, re.ASCII):
        return float(word)
    return None


def _kind_of(path: Sequence[str]) -> tuple[Any, str]:
    """Return the annotation of what a known path holds, its None and its constraints left out."""
    if path[0] != _PROFILES:
        field = ConfigFile.model_fields[path[0]]
        return _bare(field.annotation), field.description or ""
    rest = ".".join(path[2:])
    for name, field in _leaves(Profile):
        if name == rest:
            return _bare(field.annotation), field.description or ""
        if get_origin(field.annotation) is dict and rest.startswith(f"{name}."):
            return str, field.description or ""
    raise bad_value(f'"{".".join(path)}" is a table of settings: set one of them.')


def _is_known(rest: tuple[str, ...]) -> bool:
    """Whether the path leads to a setting, or to a table of settings."""
    for name, field in _leaves(Profile):
        known = tuple(name.split("."))
        if known[: len(rest)] == rest:
            return True
        if get_origin(field.annotation) is dict and len(rest) == len(known) + 1 and rest[:-1] == known:
            return True
    return False


def _leaves(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, field in model.model_fields.items():
        inner = _model_of(field.annotation)
        if inner is None:
            yield f"{prefix}{name}", field
        else:
            yield from _leaves(inner, f"{prefix}{name}.")


def _model_of(annotation: Any) -> type[BaseModel] | None:
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _bare(annotation: Any) -> Any:
    """Take None and Annotated off: what is left is str, bool, int, a Literal, a union of numbers or a list."""
    if get_origin(annotation) in (Union, types.UnionType):
        members = [_bare(member) for member in get_args(annotation) if member is not type(None)]
        return members[0] if len(members) == 1 else Union[tuple(members)]  # noqa: UP007 - made at run time
    return _bare(get_args(annotation)[0]) if hasattr(annotation, "__metadata__") else annotation


def _refuse_secret(path: Sequence[str]) -> None:
    if path[-1].lower() in SECRET_NAMES:
        raise bad_value(f'"{".".join(path)}": a key never stands in argv, nor in config.toml.', hint=USE_LOGIN)


def _unknown(text: str) -> EscrowctlError:
    known = (*(name for name in ConfigFile.model_fields if name != _PROFILES), *profile_settings())
    return bad_value(f'there is no setting "{text}"{nearest(text, known)}.')


def nearest(name: str, known: Sequence[str]) -> str:
    """Return how to go on after an unknown name: the nearest known one, else all of them."""
    from difflib import get_close_matches  # noqa: PLC0415 - for mistakes only

    found = get_close_matches(name, known, n=1, cutoff=0.5)
    return f'; the nearest is "{found[0]}"' if found else f"; there are: {', '.join(known)}"
