"""The model of config.toml: the profiles, the default profile, and the settings by name.

Importing pydantic takes as long as the rest of a command's start-up. So this module is imported only if a
config file exists or is written. `escrowctl help settings` prints the description of each field,
which also completes the error message "X: it should be ...".
"""

import re
import tomllib
from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.fields import FieldInfo

from escrowctl.config.origin import Origin, parse_base_url, refuse_double_prefix
from escrowctl.config.service import FAILED, MAX_TIMEOUT, PENDING_STATUSES
from escrowctl.contract.identifiers import UUID_PATTERN
from escrowctl.contract.money import make_money, parse_amount, parse_currency
from escrowctl.contract.operations import DEFAULT_API_PREFIX
from escrowctl.contract.redaction import is_private
from escrowctl.errors import EscrowctlError, bad_value, command
from escrowctl.journal_url import parse_journal_url

SettingValue = str | int | float | bool | list[str]

SECRET_NAMES = frozenset({"api_key", "apikey", "api-key", "key", "token", "secret", "password", "bearer"})
"""Names that people try for an API key. config.toml never holds a key."""

LOGIN_HINT = command("auth login", "to type the key, or to pass it through a pipe", bare=True)

SETTINGS_HINT = command("help settings", "to see all settings", bare=True)

PROFILE_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
API_PREFIX_PATTERN = r"^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$"

_Text = Annotated[str, StringConstraints(min_length=1)]
_ProfileName = Annotated[str, StringConstraints(pattern=PROFILE_NAME_PATTERN)]
_Pointer = Annotated[str, StringConstraints(pattern=r"^(/.+)$")]
_CurrencyCode = Annotated[str, StringConstraints(pattern=r"^[A-Z0-9]{3,10}$")]
_HeaderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,64}$")]
_Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")]


class _StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ReplyPointers(_StrictModel):
    """JSON Pointers (RFC 6901) to the fields that escrowctl needs in the service's replies."""

    id: _Pointer | None = Field(default=None, description="a JSON Pointer to the id in a reply, such as /data/id")
    status: _Pointer | None = Field(default=None, description="a JSON Pointer to the status in a reply")
    amount: _Pointer | None = Field(default=None, description="a JSON Pointer to the amount in a reply")
    currency: _Pointer | None = Field(default=None, description="a JSON Pointer to the currency in a reply")


class Statuses(_StrictModel):
    """The service's words for a status: a list for each meaning."""

    released: list[_Text] = Field(default=[], description='a list of statuses that mean released, such as ["released"]')
    pending: list[_Text] = Field(
        default=[*PENDING_STATUSES],
        description="a list of statuses that mean accepted, but not yet released; config set adds to the list",
    )
    failed: list[_Text] = Field(
        default=[*FAILED],
        description="a list of statuses that mean that an escrow has failed; config set replaces the list",
    )


class WebhookTable(_StrictModel):
    """The service's field names for a new webhook, and how it signs events. Same fields as WebhookSettings."""

    url_field: _Text = Field(default="url", description="the field in which webhook create sends --url")
    events_field: _Text = Field(default="events", description="the field in which webhook create sends --event")
    scheme: Literal["standard", "hmac-sha256", "none"] = Field(
        default="standard", description="standard (Standard Webhooks), hmac-sha256 or none: how events are signed"
    )
    signature_header: _HeaderName | None = Field(
        default=None, description="with hmac-sha256, the header of the signature (hex or base64), such as X-Signature"
    )


class Profile(_StrictModel):
    """The settings of one service: a table `[profiles.NAME]` in config.toml."""

    base_url: str = Field(description="the service's base URL, such as https://escrow.example.com")
    mode: Literal["test", "live"] | None = Field(
        default=None, description="test or live; if not set, test for a loopback host, else live"
    )
    api_prefix: Annotated[str, StringConstraints(pattern=API_PREFIX_PATTERN)] = Field(
        default=DEFAULT_API_PREFIX, description="the beginning of every path of the interface, such as /v1"
    )
    api_key_file: _Text | None = Field(
        default=None, description="the path of a file with the API key (mode 0600); not needed after auth login"
    )
    read_only: bool = Field(default=False, description="true or false; if true, no write is sent")
    caps: dict[str, str | int] = Field(
        default={},
        description='a table of daily limits (UTC) for the sum of creates, and of releases, such as caps.EUR = "5000"',
    )
    timeout: Annotated[int | float, Field(gt=0, le=MAX_TIMEOUT)] | None = Field(
        default=None,
        description=f"the seconds for one attempt, at most {MAX_TIMEOUT:g}; if not set, 30 for reads and 60 for writes",
    )
    status: Statuses = Field(default=Statuses(), description="a table of statuses")
    reply: ReplyPointers = Field(default=ReplyPointers(), description="a table of JSON Pointers")
    webhook: WebhookTable = Field(default=WebhookTable(), description="a table about webhooks")
    reference_field: _Text | None = Field(
        default=None, description="the field in which --reference is sent; if not set, --reference is not sent"
    )
    currencies: list[_CurrencyCode] = Field(
        default=[], description='a list of currency codes beyond ISO 4217, such as ["XTS"]'
    )
    idempotency: Literal["none", "header"] = Field(
        default="none", description='"none", or "header" if the service deduplicates by Idempotency-Key'
    )
    retry_throttled: bool = Field(
        default=False,
        description="true or false; true if the service rejects throttled requests before it processes them",
    )
    account: _Identifier | None = Field(
        default=None,
        description="one name for all keys of an account: 1 to 64 letters, digits, dots, hyphens, underscores",
    )
    service_id: _Identifier | None = Field(
        default=None,
        description="one name for all base URLs of a service: 1 to 64 letters, digits, dots, hyphens, underscores",
    )
    journal_id: Annotated[str, StringConstraints(pattern=f"^{UUID_PATTERN}$")] | None = Field(
        default=None,
        description="the id of the only journal to use, as config path prints it; with another journal, commands fail",
    )
    journal: _Text | None = Field(
        default=None,
        description="the PostgreSQL URL of a journal that several machines share; if not set, this machine's own",
    )

    @property
    def origin(self) -> Origin:
        """The normal form of the base URL."""
        return parse_base_url(self.base_url, source="base_url")

    @model_validator(mode="after")
    def _check_values(self) -> Self:
        try:
            refuse_double_prefix(self.origin, self.api_prefix, source="base_url")
            for currency, cap in self.caps.items():
                listed, name = frozenset(self.currencies), f"caps.{currency}"
                code = parse_currency(currency, listed=listed, name=name)
                make_money(parse_amount(str(cap), name=name), code, name=name)
        except EscrowctlError as error:
            raise ValueError(error.message) from error
        if self.journal is not None:
            try:
                parse_journal_url(self.journal)
            except ValueError as error:
                raise ValueError(f"journal {error}.") from error
        if self.reference_field is not None and is_private(self.reference_field):
            raise ValueError(f'reference_field "{self.reference_field}" is named like a secret: choose another field.')
        return self


class ConfigFile(_StrictModel):
    """The content of config.toml."""

    default_profile: _ProfileName | None = Field(
        default=None, description="the name of the profile that is used without -p"
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
"""SETTINGS, and `default_profile`, the one setting outside the profiles."""


def find_default(name: str) -> object:
    """Return the built-in value of a profile's setting; None for a setting without one, such as `caps.EUR`."""
    field = SETTINGS.get(name)
    return None if field is None or field.is_required() else field.default


def describe_setting(parts: Sequence[str]) -> tuple[str, str]:
    """Return a setting's dotted name and its description. `parts` is the setting's path in a ValidationError."""
    if parts[0] != "profiles":
        return parts[0], ConfigFile.model_fields[parts[0]].description or ""
    known = {**Profile.model_fields, **SETTINGS}
    name = next((name for name in (".".join(parts[2:4]), *parts[2:3]) if name in known), None)
    if name is None:
        return ".".join(parts[:2]), ConfigFile.model_fields["profiles"].description or ""
    return f"profiles.{parts[1]}.{name}", known[name].description or ""


def parse_setting_name(text: str, *, profile: str | None) -> tuple[str, ...]:
    """Return the path of a setting in config.toml. A name without `profiles.NAME` is a setting of `profile`.

    Raises EscrowctlError `ErrorCode.BAD_VALUE` for an unknown name, for a name in SECRET_NAMES, and for a name
    that needs `profile` if `profile` is None.
    """
    path = tuple(text.split("."))
    if path[-1].lower() in SECRET_NAMES:
        raise bad_value(f'"{text}": API keys are accepted neither as arguments nor in config.toml.', hint=LOGIN_HINT)
    if path == ("default_profile",):
        return path
    rest = path
    if path[0] == "profiles":
        rest = path[2:]
        if len(path) == 1 or not re.fullmatch(PROFILE_NAME_PATTERN, path[1]):
            raise bad_value(f'"{text}" has no valid profile name: write profiles.NAME.SETTING.')
    if rest and not is_setting(rest) and (len(rest) > 1 or rest[0] not in Profile.model_fields):
        raise bad_value(f'there is no setting "{".".join(rest)}"{suggest_setting(".".join(rest))}.', hint=SETTINGS_HINT)
    if path[0] == "profiles":
        return path
    if profile is None:
        choose = "repeat the command with -p NAME"
        raise bad_value(f'"{text}" is a setting of a profile, and no profile is chosen.', hint=choose)
    return ("profiles", profile, *path)


def is_setting(path: Sequence[str]) -> bool:
    """Whether a path inside a profile is one setting, such as `caps.EUR`; False for a table, such as `caps`."""
    return path[:-1] == ("caps",) or (".".join(path) in SETTINGS and path != ("caps",))


def parse_setting_value(path: Sequence[str], words: Sequence[str]) -> SettingValue:
    """Return `words` as a value for the setting at `path`: a list, number, true, false or text without quotes.

    A list is given as a TOML list, as several words, or with commas. Raises `ErrorCode.BAD_VALUE` for a table,
    an empty item, or several words for one value. `ConfigEditor` checks later if the value is valid.
    """
    name, rest = ".".join(path), tuple(path[2:])
    if path[0] == "profiles" and not is_setting(rest):
        raise bad_value(f'"{name}" is a table of settings: set one of them.')
    default = find_default(".".join(rest))
    if isinstance(default, list):
        items: list[str] = []
        for word in words:
            listed = _read_toml(word)
            if isinstance(listed, list):
                items += listed
            else:
                items += [listed] if isinstance(listed, str) else [item.strip() for item in word.split(",")]
        if "" in items:
            raise bad_value(f"{name} has an empty item.")
        return items
    if len(words) != 1:
        raise bad_value(f"{name} takes one value, not {len(words)}: quote a value with spaces.")
    value = _read_toml(words[0])
    has_accepted_type = isinstance(value, str) or rest == ("timeout",) or isinstance(default, bool)
    return value if has_accepted_type and isinstance(value, str | int | float) else words[0]


def _read_toml(word: str) -> object:
    """Return the value of a word as TOML; None if the word is not valid TOML."""
    try:
        tables = tomllib.loads(f"value = {word}")
    except (ValueError, RecursionError):
        return None
    return tables["value"] if len(tables) == 1 else None


def suggest_setting(name: str) -> str:
    """Return a text to end a message on a wrong name: `; the nearest is "mode"`, or `""` if no name is near."""
    from difflib import get_close_matches  # noqa: PLC0415 - only mistakes need it

    found = get_close_matches(name, ["profiles", *ALL_SETTINGS], n=1)
    return f'; the nearest is "{found[0]}"' if found else ""
