"""Suggest the line that was probably meant, after a word of another program, a wrong word order, or a typo."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import takewhile

_NOUN_SYNONYMS = {
    "tx": ("transaction", "transactions", "escrow", "escrows", "payment", "payments"),
    "user": ("users",),
    "webhook": ("webhooks",),
    "batch": ("batches",),
    "journal": ("journals", "entry", "entries"),
    "auth": ("profile", "profiles", "account", "accounts"),
    "config": ("setting", "settings"),
}
"""Maps a noun to other words that people type for it."""

_VERB_SYNONYMS = (
    ("get", "show", "view", "describe", "status"),
    ("list", "ls", "status"),
    ("create", "new", "add", "register"),
    ("update", "edit", "set"),
    ("unset", "delete", "remove", "rm", "drop"),
    ("serve", "start", "run"),
)
"""Groups of verbs with the same meaning. If a word is in several groups, the first one counts."""

_SAFE_ARGUMENT = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_./-]{0,39}", re.ASCII)
"""Matches an argument that a suggestion may repeat."""

_MIN_SIMILARITY = 0.75
"""A word less similar than this is no typo of a command. A lower value would take "secret" for "create"."""


def suggest_command(words: Sequence[str], tree: Mapping[str, Sequence[str]]) -> str | None:
    """Return the command that was probably meant, with the arguments before the first option; else None.

    `tree` maps each noun to its verbs, and each command without a noun to an empty sequence.
    """
    words = [*takewhile(lambda word: not word.startswith("-"), words)]
    first, second, *_ = *words, ""
    noun, later = _find_noun(first, tree), _find_noun(second, tree)
    orders = [(noun, second or "list", words[2:]), (later, first, words[2:])]
    if not noun:
        orders += [(other, first, words[1:]) for other in tree]
    for find in (_find_verb, _find_similar):
        for one, verb, rest in orders:
            if found := find(verb, tree.get(one, ())):
                # A word after `auth` may be a key: it is not shown again.
                typed = () if one == "auth" else filter(_SAFE_ARGUMENT.fullmatch, rest)
                return " ".join((one, found, *typed))
    return None if noun else _find_similar(first, list(tree))


def suggest_json(words: Sequence[str], option: str) -> list[str] | None:
    """Return `words` with `--json` in place of `option` and its value; None if the value does not ask for JSON."""
    place = next((number for number, word in enumerate(words) if word.startswith(option)), len(words))
    asked = " ".join(words[place : place + 2]).removeprefix(option).lstrip("= ")
    if not asked.startswith("json"):
        return None
    return [*words[:place], "--json", *words[place + (2 if words[place] == option else 1) :]]


def _find_noun(word: str, tree: Mapping[str, Sequence[str]]) -> str:
    return word if word in tree else next((noun for noun, others in _NOUN_SYNONYMS.items() if word in others), "")


def _find_verb(word: str, verbs: Sequence[str]) -> str | None:
    """Return the verb in `verbs` that `word` means: the word itself or a synonym; else None."""
    same = next((group for group in _VERB_SYNONYMS if word in group), ())
    return word if word in verbs else next((verb for verb in same if verb in verbs), None)


def _find_similar(word: str, known: Sequence[str]) -> str | None:
    return next(iter(get_close_matches(word, known, n=1, cutoff=_MIN_SIMILARITY)), None)
