"""87 places in which a key can be typed by mistake. `KEY` is replaced by it, `URL` by the service's address.

Ids in lines are those of the service, which answers everything with one held escrow.
"""

from dataclasses import dataclass, field

CREATE = ("tx", "create", "--amount", "100", "--currency", "USD")
RELEASE = ("tx", "release", "tx_1", "--yes")
WEBHOOK = ("webhook", "create", "--url", "https://hooks.example.net/x")
ACME = "[profiles.acme]\nbase_url = 'URL'\n"
LOGIN = ("auth", "login", "--base-url", "URL", "--mode", "test")


@dataclass(frozen=True)
class Place:
    """One mistake: the line, the variables and the config file, and what is typed when asked."""

    line: tuple[str, ...]
    environ: dict[str, str] = field(default_factory=dict)
    config: str = ""
    stdin: str = ""
    terminal: bool = False


def _in_options() -> dict[str, Place]:
    return {
        **{
            f"tx create {option}": Place(("tx", "create", *_but(option), option, value))
            for option, value in (
                ("--amount", "KEY"), ("--currency", "KEY"), ("--reference", "KEY"), ("--reason", "paid with KEY"),
                ("--idempotency-key", "KEY"), ("--data", "KEY"), ("--allow-duplicate", "KEY"), ("--timeout", "KEY"),
                ("--color", "KEY"), ("--fields", "KEY"), ("--config", "KEY"),
                ("--profile", "KEY"), ("--key", "KEY"), ("--KEY", "x"),
            )
        },
        "tx create --data, a field": Place((*CREATE, "--data", '{"memo":"KEY"}')),
        "tx create --data, a name": Place((*CREATE, "--data", '{"KEY":1}')),
        "tx create --data, a file": Place((*CREATE, "--data", "@KEY")),
        "tx create --data, standard input": Place((*CREATE, "--data", "@-"), stdin='{"memo":"KEY"}'),
        "tx create --dry-run": Place((*CREATE, "--reference", "KEY", "--dry-run")),
        "tx create --fields, a pointer": Place((*CREATE, "--fields", "id,/KEY")),
        "tx release --expect-amount": Place((*RELEASE, "--expect-amount", "KEY")),
        "tx release --expect-currency": Place((*RELEASE, "--expect-currency", "KEY")),
        "tx release --deadline": Place((*RELEASE, "--wait", "--deadline", "KEY")),
        "webhook create --url": Place(("webhook", "create", "--url", "KEY")),
        "webhook create --url, its path": Place(("webhook", "create", "--url", "https://hooks.example.net/KEY")),
        "webhook create --event": Place((*WEBHOOK, "--event", "KEY")),
    }  # fmt: skip


def _but(option: str) -> tuple[str, ...]:
    given = {"--amount": "100", "--currency": "USD"}
    return tuple(word for name, value in given.items() if name != option for word in (name, value))


def _in_arguments() -> dict[str, Place]:
    return {
        "an id": Place(("tx", "get", "KEY")),
        "doctor --tx": Place(("doctor", "--tx", "KEY")),
        "an id among others": Place(("tx", "get", "tx_1", "KEY")),
        "an id on standard input": Place(("tx", "get", "-"), stdin="tx_1\nKEY\n"),
        "an id to release": Place(("tx", "release", "KEY", "--yes")),
        "a user's id": Place(("user", "get", "KEY")),
        "an entry": Place(("journal", "show", "KEY")),
        "a command": Place(("KEY",)),
        "a verb": Place(("tx", "KEY")),
        "a topic": Place(("help", "KEY")),
        "an extra word": Place((*CREATE, "KEY")),
        "a method": Place(("api", "KEY", "/users/usr_1")),
        "a path": Place(("api", "GET", "KEY")),
        "a segment": Place(("api", "GET", "/users/KEY")),
        "a query": Place(("api", "GET", "/users/usr_1?key=KEY")),
        "a query of a write": Place(("api", "POST", "/notes?key=KEY", "--data", "{}", "--yes")),
        "journal list --since": Place(("journal", "list", "--since", "KEY")),
        "journal list --state": Place(("journal", "list", "--state", "KEY")),
        "journal totals --since": Place(("journal", "totals", "--since", "KEY")),
        "journal import": Place(("journal", "import", "KEY")),
        "sandbox tx create --reference": Place(("--sandbox", *CREATE, "--reference", "KEY")),
    }


def _in_accounts() -> dict[str, Place]:
    return {
        "auth login --mode": Place((*LOGIN[:-1], "KEY"), stdin="KEY"),
        "auth login --api-prefix": Place((*LOGIN, "--api-prefix", "/KEY"), stdin="KEY"),
        "auth login -p": Place((*LOGIN, "-p", "KEY"), stdin="KEY"),
        "auth login --base-url, its path": Place(
            ("auth", "login", "--base-url", "URL/KEY", "--mode", "test"), stdin="KEY"
        ),
        "auth login, an extra word": Place((*LOGIN, "KEY"), stdin="KEY"),
        "auth switch": Place(("auth", "switch", "KEY")),
        "auth logout -p": Place(("auth", "logout", "-p", "KEY")),
        "config get": Place(("config", "get", "KEY")),
        "config set, a name": Place(("config", "set", "KEY", "x")),
        "config set base_url": Place(("config", "set", "profiles.acme.base_url", "https://h.example/KEY")),
        "config set service_id": Place(("config", "set", "profiles.acme.service_id", "KEY"), config=ACME),
        "config set mode": Place(("config", "set", "profiles.acme.mode", "KEY"), config=ACME),
        "config set, a profile": Place(("config", "set", "profiles.KEY.base_url", "https://h.example")),
        "config set default_profile": Place(("config", "set", "default_profile", "KEY")),
        "config unset": Place(("config", "unset", "profiles.KEY")),
    }  # fmt: skip


def _in_variables() -> dict[str, Place]:
    get = ("tx", "get", "tx_1")
    return {
        **{
            f"ESCROWCTL_BASE_URL={value}": Place(CREATE, {"ESCROWCTL_BASE_URL": value})
            for value in ("KEY", "URL/KEY", "URL/?key=KEY", "URL/#KEY", "http://KEY@127.0.0.1", "https://KEY")
        },
        "ESCROWCTL_BASE_URL, shown by config list": Place(("config", "list"), {"ESCROWCTL_BASE_URL": "URL/KEY"}),
        "ESCROWCTL_PROFILE": Place(get, {"ESCROWCTL_PROFILE": "KEY"}),
        "ESCROWCTL_API_KEY and ESCROWCTL_PROFILE exchanged": Place(
            get, {"ESCROWCTL_API_KEY": "acme-test", "ESCROWCTL_PROFILE": "KEY", "ESCROWCTL_BASE_URL": ""}
        ),
        "ESCROWCTL_API_KEY and ESCROWCTL_BASE_URL exchanged": Place(
            get, {"ESCROWCTL_API_KEY": "URL", "ESCROWCTL_BASE_URL": "KEY"}
        ),
        "ESCROWCTL_API_KEY_FILE": Place(get, {"ESCROWCTL_API_KEY_FILE": "KEY"}),
        "ESCROWCTL_CONFIG": Place(get, {"ESCROWCTL_CONFIG": "KEY"}),
        "ESCROWCTL_HOME": Place(CREATE, {"ESCROWCTL_HOME": "KEY"}),
        "ESCROWCTL_MODE": Place(get, {"ESCROWCTL_MODE": "KEY"}),
        "ESCROWCTL_STATUS_RELEASED": Place(get, {"ESCROWCTL_STATUS_RELEASED": "KEY,"}),
        "ESCROWCTL_STATUS_RELEASED, listed": Place(("config", "list"), {"ESCROWCTL_STATUS_RELEASED": "KEY"}),
        "ESCROWCTL_JOURNAL_ID": Place(("config", "list"), {"ESCROWCTL_JOURNAL_ID": "KEY"}),
        "ESCROWCTL_CA_BUNDLE": Place(get, {"ESCROWCTL_CA_BUNDLE": "KEY"}),
        "HTTPS_PROXY": Place(("config", "list"), {"HTTPS_PROXY": "http://KEY:3128"}),
    }


def _in_files_and_answers() -> dict[str, Place]:
    profile = "[profiles.acme]\nbase_url = '{}'\n"
    chosen = {"ESCROWCTL_PROFILE": "acme", "ESCROWCTL_BASE_URL": ""}
    return {
        "base_url in config.toml": Place(CREATE, chosen, profile.format("URL/KEY")),
        "base_url in config.toml, listed": Place(("config", "list"), chosen, profile.format("URL/KEY")),
        "base_url in config.toml, its status": Place(("auth", "status"), chosen, profile.format("URL/KEY")),
        "base_url in config.toml, its query": Place(CREATE, chosen, profile.format("URL/?key=KEY")),
        "a word in place of TOML": Place(CREATE, chosen, "KEY"),
        "the confirmation of a release": Place(("tx", "release", "tx_1"), stdin="KEY\n", terminal=True),
        "the name asked for by auth login": Place(
            ("auth", "login", "--no-check"), {"ESCROWCTL_BASE_URL": ""}, stdin="URL\ntest\nKEY\nKEY\nKEY\n",
            terminal=True,
        ),
        "the base URL asked for by auth login": Place(
            ("auth", "login", "--no-check"), {"ESCROWCTL_BASE_URL": ""}, stdin="KEY\nKEY\nKEY\n", terminal=True
        ),
    }  # fmt: skip


PLACES = {
    **_in_options(), **_in_arguments(), **_in_accounts(), **_in_variables(), **_in_files_and_answers(),
}  # fmt: skip
