"""The shape of config.toml: profiles and which of them is the default.

pydantic costs as much start-up as the rest of a command together, so this module is imported only
where a config file exists.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from escrowctl.contract.operations import DEFAULT_API_PREFIX

_PointerText = Annotated[str, StringConstraints(pattern=r"^(/.+)$")]
_CurrencyCode = Annotated[str, StringConstraints(pattern=r"^[A-Z0-9]{3,10}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ReplyPointers(_Strict):
    """Where this service's replies hold the fields escrowctl needs, as JSON Pointers (RFC 6901)."""

    id: _PointerText | None = None
    status: _PointerText | None = None
    amount: _PointerText | None = None
    currency: _PointerText | None = None


class StatusWords(_Strict):
    """Which of the service's status words mean what."""

    released: list[str] = []


class Profile(_Strict):
    """One service, as `[profiles.NAME]` in config.toml describes it."""

    base_url: str
    api_prefix: Annotated[str, StringConstraints(pattern=r"^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$")] = DEFAULT_API_PREFIX
    mode: Literal["test", "live"] | None = None
    service_id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")] | None = None
    api_key_file: str | None = None
    read_only: bool = False
    currencies: list[_CurrencyCode] = []
    reference_field: Annotated[str, StringConstraints(min_length=1)] | None = None
    timeout: Annotated[float, Field(gt=0, le=3600, strict=False)] | None = None
    reply: ReplyPointers = ReplyPointers()
    status: StatusWords = StatusWords()


class ConfigFile(_Strict):
    """The whole of config.toml."""

    default_profile: str | None = None
    profiles: dict[str, Profile] = {}
