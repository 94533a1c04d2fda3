"""Which address a webhook endpoint may have, as one regular expression.

It is one expression, and not a chain of checks, so that the OpenAPI document can state the very rule
that is enforced. It holds nothing that Python and ECMA-262 read differently.

The grammar is RFC 3986's, in ASCII: `http` or `https` in small letters, a host, a port from 1 to
65535, a path, a query. Left out on purpose: userinfo (a password would be stored and listed) and a
fragment (it is never sent). A name in other letters has its ASCII form (RFC 5891, `xn--...`).
"""

import re

MAX_URL_LENGTH = 2048

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_NAME = rf"{_LABEL}(?:\.{_LABEL})*"  # a dotted IPv4 address is one of these

_GROUP = "[0-9A-Fa-f]{1,4}"
_IPV6 = "|".join(
    (
        f"(?:{_GROUP}:){{7}}{_GROUP}",
        *(f"(?:{_GROUP}:){{1,{7 - after}}}(?::{_GROUP}){{1,{after}}}" for after in range(1, 7)),
        f"(?:{_GROUP}:){{1,7}}:",
        f":(?::{_GROUP}){{1,7}}",
        "::",
    )
)

_PORT = "[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"

# Percent signs come with two digits; written this way, a search never has two ways to go.
_IN_PATH = "[A-Za-z0-9._~!$&'()*+,;=:@/-]*"
_PATH = f"{_IN_PATH}(?:%[0-9A-Fa-f]{{2}}{_IN_PATH})*"
_IN_QUERY = "[A-Za-z0-9._~!$&'()*+,;=:@/?-]*"
_QUERY = f"{_IN_QUERY}(?:%[0-9A-Fa-f]{{2}}{_IN_QUERY})*"

URL_PATTERN = rf"https?://(?:{_NAME}|\[(?:{_IPV6})\])(?::(?:{_PORT}))?(?:/{_PATH})?(?:\?{_QUERY})?"

URL_RULE = (
    "must be an absolute http or https URL in ASCII, without user name, password or fragment,"
    f" of at most {MAX_URL_LENGTH} characters."
)


def is_endpoint_url(text: str) -> bool:
    """Whether an endpoint may have this address; nothing is looked up or reached."""
    # Compiled at the first use and not at import: 1.4 ms that few commands need.
    return len(text) <= MAX_URL_LENGTH and re.fullmatch(URL_PATTERN, text) is not None
