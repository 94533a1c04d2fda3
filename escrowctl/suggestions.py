"""Suggest the line that was probably meant: words of other programs, another order, a typo."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import takewhile

_NOUNS = {
    "tx": ("transaction", "transactions", "escrow", "escrows", "payment", "payments"),
    "user": ("users",),
    "webhook": ("webhooks",),
    "batch": ("batches",),
    "journal": ("journals", "entry", "entries"),
    "auth": ("profile", "profiles", "account", "accounts"),
    "config": ("setting", "settings"),
}
"""Nouns, and words that people type for them."""

_VERBS = (
    ("get", "show", "view", "describe", "status"),
    ("list", "ls", "status"),
    ("create", "new", "add", "register"),
    ("update", "edit", "set"),
    ("unset", "delete", "remove", "rm", "drop"),
    ("serve", "start", "run"),
)
"""Groups of verbs with the same meaning. The first group that has a word decides its meaning."""

_ARGUMENT = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_./-]{0,39}", re.ASCII)
"""An argument that a suggestion may repeat."""

NEAR = 0.75
"""The least similarity of a typo. A lower one would take "secret" for "create", a write."""

Tree = Mapping[str, Sequence[str]]
"""The verbs of each noun, and no verbs for each command without a noun."""


def suggest_line(words: Sequence[str], tree: Tree) -> str | None:
    """Return the command that was probably meant, with the arguments before the first option; None if none is near."""
    words = [*takewhile(lambda word: not word.startswith("-"), words)]
    first, second, *_ = *words, ""
    noun, later = _find_noun(first, tree), _find_noun(second, tree)
    orders = [(noun, second or "list", words[2:]), (later, first, words[2:])]
    if not noun:
        orders += [(other, first, words[1:]) for other in tree]
    for find in (_find_verb, _find_near_verb):
        for one, verb, rest in orders:
            if found := find(verb, tree.get(one, ())):
                return _join(one, found, rest)
    return None if noun else next(iter(get_close_matches(first, tree, n=1, cutoff=NEAR)), None)


def suggest_json(words: Sequence[str], option: str) -> list[str] | None:
    """Return the line with `--json` in place of another program's option, such as `--output json`; None if not JSON."""
    at = next((number for number, word in enumerate(words) if word.startswith(option)), len(words))
    asked = " ".join(words[at : at + 2]).removeprefix(option).lstrip("= ")
    if not asked.startswith("json"):
        return None
    return [*words[:at], "--json", *words[at + (2 if words[at] == option else 1) :]]


def _find_noun(word: str, tree: Tree) -> str:
    return word if word in tree else next((noun for noun, others in _NOUNS.items() if word in others), "")


def _find_verb(word: str, verbs: Sequence[str]) -> str | None:
    """Return the verb that a word means: the word itself, or a synonym."""
    same = next((group for group in _VERBS if word in group), ())
    return word if word in verbs else next((verb for verb in same if verb in verbs), None)


def _find_near_verb(word: str, verbs: Sequence[str]) -> str | None:
    return next(iter(get_close_matches(word, verbs, n=1, cutoff=NEAR)), None)


def _join(noun: str, verb: str, rest: Sequence[str]) -> str:
    # A word after `auth` may be a key: it is not shown again.
    typed = () if noun == "auth" else filter(_ARGUMENT.fullmatch, rest)
    return " ".join((noun, verb, *typed))
