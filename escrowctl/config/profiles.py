"""The shape of config.toml: profiles and which of them is the default.

pydantic costs as much start-up as the rest of a command together, so this module is imported only
where a config file exists or is written. Each field's description completes "X should be ...", and
is what an operator reads when it is not.
"""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from escrowctl.config.service import FAILED, MAX_TIMEOUT, PENDING
from escrowctl.contract.money import check_minor_digits, parse_amount, parse_currency
from escrowctl.contract.operations import DEFAULT_API_PREFIX
from escrowctl.errors import EscrowctlError

PROFILE_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
API_PREFIX = r"^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$"
_UUID = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_NAME = r"^[A-Za-z0-9._-]{1,64}$"

_Text = Annotated[str, StringConstraints(min_length=1)]
_ProfileName = Annotated[str, StringConstraints(pattern=PROFILE_NAME)]
_Pointer = Annotated[str, StringConstraints(pattern=r"^(/.+)$")]
_CurrencyCode = Annotated[str, StringConstraints(pattern=r"^[A-Z0-9]{3,10}$")]

_POINTER = "a JSON Pointer such as /data/id"
_NAME_IS = "1 to 64 letters, digits, points, hyphens and underscores"
_FIELD_NAME = "the name of a field, such as url"
_TRUTH = "true or false, without quotes"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ReplyPointers(_Strict):
    """Where this service's replies hold the fields escrowctl needs, as JSON Pointers (RFC 6901)."""

    id: _Pointer | None = Field(default=None, description=_POINTER)
    status: _Pointer | None = Field(default=None, description=_POINTER)
    amount: _Pointer | None = Field(default=None, description=_POINTER)
    currency: _Pointer | None = Field(default=None, description=_POINTER)


class StatusWords(_Strict):
    """Which of the service's status words mean what."""

    released: list[_Text] = Field(default=[], description='a list of words, such as ["released"]')
    pending: list[_Text] = Field(default=[*PENDING], description='a list of statuses, such as ["queued"]')
    failed: list[_Text] = Field(default=[*FAILED], description='a list of statuses, such as ["declined"]')


class WebhookManner(_Strict):
    """What this service calls the fields of a new webhook."""

    url_field: _Text = Field(default="url", description=_FIELD_NAME)
    events_field: _Text = Field(default="events", description=_FIELD_NAME)


class Profile(_Strict):
    """One service, as `[profiles.NAME]` in config.toml describes it."""

    base_url: str = Field(description="the service's base URL, such as https://escrow.example.com")
    mode: Literal["test", "live"] | None = Field(default=None, description='"test" or "live"')
    api_prefix: Annotated[str, StringConstraints(pattern=API_PREFIX)] = Field(
        default=DEFAULT_API_PREFIX, description="a path such as /api/v1"
    )
    api_key_file: _Text | None = Field(default=None, description="the path of a file that holds the key")
    read_only: bool = Field(default=False, description=_TRUTH)
    caps: dict[str, str | int] = Field(
        default={}, description='an amount for a currency code, such as EUR = "5000": decimal text or a whole number'
    )
    timeout: Annotated[int | float, Field(gt=0, le=MAX_TIMEOUT)] | None = Field(
        default=None, description=f"seconds above 0 and at most {MAX_TIMEOUT:g}"
    )
    status: StatusWords = Field(default=StatusWords(), description="a table of status words")
    reply: ReplyPointers = Field(default=ReplyPointers(), description="a table of JSON Pointers")
    webhook: WebhookManner = Field(default=WebhookManner(), description="a table about webhooks")
    reference_field: _Text | None = Field(default=None, description="the name of the field that takes --reference")
    currencies: list[_CurrencyCode] = Field(default=[], description='a list of currency codes, such as ["XTS"]')
    idempotency: Literal["none", "header"] = Field(default="none", description='"none" or "header"')
    retry_throttled: bool = Field(default=False, description=_TRUTH)
    account: Annotated[str, StringConstraints(pattern=_NAME)] | None = Field(default=None, description=_NAME_IS)
    service_id: Annotated[str, StringConstraints(pattern=_NAME)] | None = Field(default=None, description=_NAME_IS)
    journal_id: Annotated[str, StringConstraints(pattern=_UUID)] | None = Field(
        default=None, description="a journal's id, as `escrowctl config path` prints it"
    )

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
    """The whole of config.toml."""

    default_profile: _ProfileName | None = Field(default=None, description="the name of a profile")
    profiles: dict[_ProfileName, Profile] = Field(
        default={}, description="tables named by 1 to 64 letters, digits, hyphens and underscores"
    )
