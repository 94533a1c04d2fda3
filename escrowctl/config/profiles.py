"""The shape of config.toml: profiles, which of them is the default, and the settings by name.

pydantic costs as much start-up as the rest of a command together, so this module is imported only
if a config file exists or is written. Each field's title is its text in `escrowctl help settings`; its
description completes the error message "X should be ...".
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator, model_validator
from pydantic.fields import FieldInfo

from escrowctl.config.service import FAILED, MAX_TIMEOUT, PENDING
from escrowctl.config.toml import load_toml
from escrowctl.contract.identifiers import UUID
from escrowctl.contract.money import check_minor_digits, parse_amount, parse_currency
from escrowctl.contract.operations import DEFAULT_API_PREFIX
from escrowctl.contract.redaction import is_private
from escrowctl.errors import EscrowctlError, bad_value, command

Value = str | int | float | bool | list[str]

SECRET_NAMES = frozenset({"api_key", "apikey", "api-key", "key", "token", "secret", "password", "bearer"})
"""Names that people try for the key; config.toml has no place for one."""

USE_LOGIN = command("auth login", "to type the key, or to pass it through a pipe", bare=True)

PROFILE_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
API_PREFIX = r"^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$"
_VARIABLES = {"ca_bundle": "ESCROWCTL_CA_BUNDLE", "proxy": "HTTPS_PROXY"}
"""Values in `config list` that no profile sets, and the variables that set them."""
_HEADER_NAME = r"^[A-Za-z0-9-]{1,64}$"
_NAME = r"^[A-Za-z0-9._-]{1,64}$"

_Text = Annotated[str, StringConstraints(min_length=1)]
_ProfileName = Annotated[str, StringConstraints(pattern=PROFILE_NAME)]
_Pointer = Annotated[str, StringConstraints(pattern=r"^(/.+)$")]
_CurrencyCode = Annotated[str, StringConstraints(pattern=r"^[A-Z0-9]{3,10}$")]

_POINTER = "a JSON Pointer such as /data/id"
_NAME_IS = "1 to 64 letters, digits, dots, hyphens and underscores"
_FIELD_NAME = "the name of a field, such as url"
_TRUTH = "true or false, without quotes"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ReplyPointers(_Strict):
    """JSON Pointers (RFC 6901) to the fields that escrowctl needs in this service's replies."""

    id: _Pointer | None = Field(
        default=None, title="where a reply has the id: a JSON Pointer, such as /data/id", description=_POINTER
    )
    status: _Pointer | None = Field(default=None, title="where a reply has the status", description=_POINTER)
    amount: _Pointer | None = Field(default=None, title="where a reply has the amount", description=_POINTER)
    currency: _Pointer | None = Field(default=None, title="where a reply has the currency", description=_POINTER)


class Statuses(_Strict):
    """The service's statuses by meaning."""

    released: list[_Text] = Field(
        default=[],
        title='statuses that mean released, such as ["released"]',
        description='a list of statuses, such as ["released"]',
    )
    pending: list[_Text] = Field(
        default=[*PENDING],
        title="statuses that mean accepted, but not yet released; config set adds to them",
        description='a list of statuses, such as ["queued"]',
    )
    failed: list[_Text] = Field(
        default=[*FAILED],
        title="statuses that mean created, but failed (16); config set replaces them",
        description='a list of statuses, such as ["declined"]',
    )


class WebhookTable(_Strict):
    """The service's field names for a new webhook, and how it signs events; the fields match `WebhookSettings`."""

    url_field: _Text = Field(
        default="url", title="the field in which webhook create sends --url", description=_FIELD_NAME
    )
    events_field: _Text = Field(default="events", title="the field in which it sends --event", description=_FIELD_NAME)
    scheme: Literal["standard", "hmac-sha256", "none"] = Field(
        default="standard",
        title="how events are signed: standard (Standard Webhooks), hmac-sha256, none",
        description='"standard", "hmac-sha256" or "none"',
    )
    signature_header: Annotated[str, StringConstraints(pattern=_HEADER_NAME)] | None = Field(
        default=None,
        title="with hmac-sha256: the header of the signature, in hex or base64",
        description="the name of a header, such as X-Signature",
    )


class Profile(_Strict):
    """One service, as `[profiles.NAME]` in config.toml describes it."""

    base_url: str = Field(
        title="the service's base URL; all that a profile needs",
        description="the service's base URL, such as https://escrow.example.com",
    )
    mode: Literal["test", "live"] | None = Field(
        default=None, title="test or live; without it live, for loopback test", description='"test" or "live"'
    )
    api_prefix: Annotated[str, StringConstraints(pattern=API_PREFIX)] = Field(
        default=DEFAULT_API_PREFIX, title="the path before those of the interface", description="a path such as /api/v1"
    )
    api_key_file: _Text | None = Field(
        default=None,
        title="a file with the key (0600); not needed with auth login",
        description="the path of a file that holds the key",
    )
    read_only: bool = Field(default=False, title="true: no write is sent", description=_TRUTH)
    caps: dict[str, str | int] = Field(
        default={},
        title='most that a UTC day may move, such as caps.EUR = "5000"',
        description='a currency code with an amount, such as EUR = "5000"',
    )
    timeout: Annotated[int | float, Field(gt=0, le=MAX_TIMEOUT)] | None = Field(
        default=None,
        title="seconds for one attempt; without it 30 for reads, 60 for writes",
        description=f"seconds above 0 and at most {MAX_TIMEOUT:g}",
    )
    status: Statuses = Field(default=Statuses(), description="a table of statuses")
    reply: ReplyPointers = Field(default=ReplyPointers(), description="a table of JSON Pointers")
    webhook: WebhookTable = Field(default=WebhookTable(), description="a table about webhooks")
    reference_field: _Text | None = Field(
        default=None,
        title="the field in which --reference is sent; without it, it is not sent",
        description="the name of the field that takes --reference",
    )
    currencies: list[_CurrencyCode] = Field(
        default=[],
        title='currency codes beyond ISO 4217, such as ["XTS"]',
        description='a list of currency codes, such as ["XTS"]',
    )
    idempotency: Literal["none", "header"] = Field(
        default="none",
        title='"header" if the service deduplicates by Idempotency-Key',
        description='"none" or "header"',
    )
    retry_throttled: bool = Field(
        default=False, title="true: the service rejects throttled requests before it processes them", description=_TRUTH
    )
    account: Annotated[str, StringConstraints(pattern=_NAME)] | None = Field(
        default=None, title="a name: the keys with it are one account, other names are others", description=_NAME_IS
    )
    service_id: Annotated[str, StringConstraints(pattern=_NAME)] | None = Field(
        default=None, title="a name: the base URLs with it are one service", description=_NAME_IS
    )
    journal_id: Annotated[str, StringConstraints(pattern=f"^{UUID}$")] | None = Field(
        default=None,
        title="the only journal to use; with any other, commands fail (17)",
        description="a journal's id, as `escrowctl config path` prints it",
    )

    @field_validator("reference_field")
    @classmethod
    def _check_reference_field(cls, name: str | None) -> str | None:
        if name is not None and is_private(name):
            raise ValueError(f'"{name}" is named like a secret, which escrowctl does not store: choose another field.')
        return name

    @model_validator(mode="after")
    def _check_caps(self) -> Self:
        for currency, cap in self.caps.items():
            try:
                check_minor_digits(
                    parse_amount(str(cap), name="the amount"),
                    parse_currency(currency, listed=frozenset(self.currencies), name="the currency"),
                    name="the amount",
                )
            except EscrowctlError as error:
                raise ValueError(f"caps.{currency}: {error.message}") from error
        return self


class ConfigFile(_Strict):
    """All of config.toml."""

    default_profile: _ProfileName | None = Field(
        default=None, title="the profile that is used without -p", description="the name of a profile"
    )
    profiles: dict[_ProfileName, Profile] = Field(
        default={}, description="a table with a name of 1 to 64 letters, digits, hyphens and underscores"
    )


def _list_settings() -> dict[str, FieldInfo]:
    found: dict[str, FieldInfo] = {}
    for name, field in Profile.model_fields.items():
        if isinstance(field.default, BaseModel):
            found |= {f"{name}.{inner}": value for inner, value in type(field.default).model_fields.items()}
        else:
            found[name] = field
    return found


SETTINGS = _list_settings()
"""A profile's settings by dotted name, such as `reply.id`, in the order of the model."""

ALL_SETTINGS = {"default_profile": ConfigFile.model_fields["default_profile"], **SETTINGS}
"""SETTINGS, and the one setting outside the profiles."""


def find_default(name: str) -> object:
    """Return the built-in value of a profile's setting; None if there is none, and for a setting in `caps`."""
    field = SETTINGS.get(name)
    return None if field is None or field.is_required() else field.default


def describe(location: Sequence[str | int]) -> tuple[str, str]:
    """Return the dotted name of the setting with a validation error, and the description of a correct value."""
    parts = [str(part) for part in location]
    if parts[0] != "profiles":
        field = ConfigFile.model_fields.get(parts[0])
        return parts[0], (field.description if field else None) or ""
    rest = parts[2:]
    if not rest or rest[0] == "[key]":
        return ".".join(parts[:2]), ConfigFile.model_fields["profiles"].description or ""
    name = next((name for name in (".".join(rest[:2]), rest[0]) if name in SETTINGS), ".".join(rest[:2]))
    field = SETTINGS.get(name) or Profile.model_fields.get(rest[0])
    shown = ".".join(rest[:2]) if name == "caps" else name
    return f"profiles.{parts[1]}.{shown}", (field.description if field else None) or ""


def list_siblings(location: Sequence[str | int]) -> tuple[str, ...]:
    """Return the known names in the table of an unknown name."""
    match tuple(location):
        case ("profiles", _, str(group), _):
            return tuple(type(Profile.model_fields[group].default).model_fields)
        case ("profiles", _, _):
            return tuple(Profile.model_fields)
        case _:
            return tuple(ConfigFile.model_fields)


def parse_name(text: str, *, profile: str | None) -> tuple[str, ...]:
    """Return the path in config.toml of a typed setting name. A short name means a setting of `profile`.

    Raises EscrowctlError `ErrorCode.BAD_VALUE` for an unknown name, the name of a key, and a short name
    if no profile is chosen.
    """
    path = tuple(text.split("."))
    if path[-1].lower() in SECRET_NAMES:
        raise bad_value(f'"{text}": API keys are accepted neither as arguments nor in config.toml.', hint=USE_LOGIN)
    if path == ("default_profile",):
        return path
    rest = path
    if path[0] == "profiles":
        if len(path) == 1 or not re.fullmatch(PROFILE_NAME, path[1]):
            raise bad_value(f'"{text}" names no profile: write profiles.NAME.SETTING.')
        rest = path[2:]
    if rest and not is_setting(rest) and (len(rest) > 1 or rest[0] not in Profile.model_fields):
        name = ".".join(rest)
        if variable := _VARIABLES.get(name):
            raise bad_value(f"{name} is no setting of a profile: set the variable {variable}.")
        raise bad_value(f'there is no setting "{name}"{nearest(name, tuple(ALL_SETTINGS))}.')
    if path[0] == "profiles":
        return path
    if profile is None:
        raise bad_value(
            f'"{text}" is a setting of a profile, and no profile is chosen.',
            hint=(
                "to choose a profile: repeat the command with -p NAME",
                f"or write the full name: profiles.NAME.{text}",
            ),
        )
    return ("profiles", profile, *path)


def is_setting(rest: Sequence[str]) -> bool:
    """Whether the path below a profile names one setting; a cap is one too."""
    return rest[:-1] == ("caps",) or (".".join(rest) in SETTINGS and rest != ("caps",))


def parse_value(path: Sequence[str], words: Sequence[str]) -> Value:
    """Return the typed value, read as TOML; as text if it is not TOML or the setting is a text.

    A list may also be typed as single items, as words or separated by commas. Raises EscrowctlError
    `ErrorCode.BAD_VALUE` for a table, several values for one setting and an empty item. The model checks
    the value when the file is changed.
    """
    name, rest = ".".join(path), tuple(path[2:])
    if path[0] == "profiles" and not is_setting(rest):
        raise bad_value(f'"{name}" is a table of settings: set one of them.')
    if isinstance(find_default(".".join(rest)), list):
        items = [item for word in words for item in _items(word)]
        if "" in items:
            raise bad_value(f"{name} has an empty item.")
        return items
    if len(words) != 1:
        raise bad_value(f"{name} takes one value, not {len(words)}: quote a value with spaces.")
    value = _read_toml(words[0])
    return value if value is not None and _is_taken(path, value) else words[0]


def _items(word: str) -> list[str]:
    match _read_toml(word):
        case list() as items:
            return items
        case str() as text:
            return [text]
        case _:
            return [item.strip() for item in word.split(",")]


def _read_toml(word: str) -> Any:
    """Return the TOML value of a word; None if it has none."""
    try:
        tables = load_toml(f"value = {word}")
    except ValueError:
        return None
    return tables["value"] if len(tables) == 1 else None


def _is_taken(path: Sequence[str], value: Value) -> bool:
    """Whether the setting takes a value of this type, in an otherwise empty file."""
    tables: dict[str, Any] = {"profiles": {path[1]: {"base_url": ""}}} if path[0] == "profiles" else {}
    table = tables
    for part in path[:-1]:
        table = table.setdefault(part, {})
    table[path[-1]] = value
    try:
        ConfigFile.model_validate(tables)
    except ValidationError:
        return False
    return True


def nearest(name: str, known: Sequence[str]) -> str:
    """Return the end of a message about an unknown name: the nearest known name, else all of them."""
    from difflib import get_close_matches  # noqa: PLC0415 - for mistakes only

    found = get_close_matches(name, known, n=1, cutoff=0.5)
    return f'; the nearest is "{found[0]}"' if found else f"; the known names are: {', '.join(known)}"
