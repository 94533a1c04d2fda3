"""The environment variables that escrowctl reads: the one list that help and README show."""

PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
"""Which name the proxy for real hosts, the first that is set."""

FOLDERS = {"config": "XDG_CONFIG_HOME", "state": "XDG_STATE_HOME", "cache": "XDG_CACHE_HOME"}
"""Where the platform's folders are, unless ESCROWCTL_HOME is set."""

KEYS = ("ESCROWCTL_API_KEY", "ESCROWCTL_API_KEY_FILE")

VARIABLES = (
    ("ESCROWCTL_BASE_URL", "the service's base URL"),
    ("ESCROWCTL_API_KEY", "the API key for that base URL; fewer than 8 characters are an error"),
    ("ESCROWCTL_API_KEY_FILE", "a file with that key, readable by its owner only (0600)"),
    ("ESCROWCTL_PROFILE", "the profile in config.toml to use"),
    ("ESCROWCTL_MODE", "test or live, where no profile sets it"),
    ("ESCROWCTL_CONFIG", "another config file"),
    ("ESCROWCTL_CA_BUNDLE", "certificates to trust in place of the system's"),
    ("ESCROWCTL_JOURNAL_ID", "the journal that live writes are bound to; on any other they end with 17"),
    ("ESCROWCTL_HOME", "one folder for config, state and cache: an absolute path"),
    ("HTTPS_PROXY, ALL_PROXY, NO_PROXY", "proxies for real hosts; none is used for loopback"),
    ("SSL_CERT_FILE, SSL_CERT_DIR, SSLKEYLOGFILE", "not used: the system's certificates, or ESCROWCTL_CA_BUNDLE"),
    ("NO_COLOR, FORCE_COLOR, TERM=dumb", "never colour; always, in pipes too; never"),
    ("CI", "if set, escrowctl asks nothing and uses no keyring"),
)
"""Names and their meaning."""


def is_read(name: str) -> bool:
    """Whether escrowctl reads the value of this variable; an API key in it would be a mistake."""
    return (name.startswith("ESCROWCTL_") and name != KEYS[0]) or name in (*PROXIES, *FOLDERS.values())
