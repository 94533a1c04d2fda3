"""Find every message template of escrowctl: each literal or f-string in its source that reads as words.

Docstrings, annotations, texts of `--help`, SQL and patterns are recognised and left out; `NO_MESSAGES` names the
other texts that are no messages.
"""

import ast
import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

PRODUCT = Path(__file__).parents[2] / "escrowctl"

NO_MODULES = {
    "completion/scripts.py": "shell code",
    "sandbox/openapi*.py": "the sandbox's OpenAPI document",
    "sandbox/magic.py": "bodies of the sandbox's replies, and a list (tests/sandbox)",
    "sandbox/variants.py": "bodies of the sandbox's replies (tests/sandbox)",
    "sandbox/seed.py": "SQL",
    "sandbox/operator_calls.py": "bodies of the sandbox's replies (tests/sandbox)",
    "sandbox/http.py": "bodies of the sandbox's replies (tests/sandbox)",
    "sandbox/bodies.py": "bodies of the sandbox's replies (tests/sandbox)",
    "sandbox/records.py": "bodies of the sandbox's replies (tests/sandbox)",
    "sandbox/requests.py": "bodies of the sandbox's replies (tests/sandbox)",
    "sandbox/interface.py": "bodies of the sandbox's replies (tests/sandbox)",
    "contract/redaction.py": "names of fields that hold secrets",
    "man_page.py": "the manual page (tests/cli/test_man_page.py)",
    "topics/*.py": "texts of `escrowctl help` (tests/cli/test_topics.py)",
    "crash_report.py": "the layout of a report file",
}
"""Modules without messages, each with what their texts are."""

NO_MESSAGES = {
    ("contract/operations.py", "the service does not document it"): "a value that is never shown",
    ("client/problem.py", "not found"): "what a message is compared with",
    ("config/credentials.py", "escrowctl {"): "the service's name in the keyring",
    ("contract/json.py", "bool | str"): "a type",
    ("contract/json.py", "Unterminated"): "a part of json's own sentence, to recognise it",
    ("contract/money.py", "BIF CLP"): "a table",
    ("contract/money.py", "AED AFN"): "a table",
    ("contract/money.py", "BHD IQD"): "a table",
    ("contract/money.py", "CLF UYW"): "a table",
    ("journal/witness.py", "escrowctl-head"): "the format of the head file",
    ("journal/tables/reading.py", "r.sequence"): "SQL",
    ("journal/tables/reading.py", "NOT (batch"): "SQL",
    ("journal/tables/storage.py", "batch = ?"): "SQL",
    ("journal/tables/reading.py", "{column} IN"): "SQL",
    ("journal/tables/reading.py", "sent_at"): "SQL",
    ("journal/tables/reading.py", "? IN"): "SQL",
    ("journal/tables/reading.py", "reference IS NULL"): "SQL",
    ("journal/sqlite/schema.py", "  {name} TEXT"): "SQL",
    ("journal/sqlite/schema.py", " NOT NULL"): "SQL",
    ("journal/sqlite/schema.py", "{DROPPED}"): "SQL",
    ("journal/tables/transaction.py", "{name} = excluded"): "SQL",
    ("journal/tables/transaction.py", "operation = ?"): "SQL",
    ("app.py", "The operator's tool for an escrow service."): "--help",
    ("app.py", "Create, read and release"): "--help",
    ("app.py", "Look users up."): "--help",
    ("app.py", "Register endpoints; receive"): "--help",
    ("app.py", "Store, check and switch"): "--help",
    ("app.py", "See and change settings."): "--help",
    ("app.py", "Serve, inspect and empty"): "--help",
    ("app.py", "Print or install completion"): "--help",
    ("app.py", "List this machine's writes"): "--help",
    ("options.py", "Shared options ("): "--help",
    ("completion/tree.py", "tx release"): "the name of a command",
    ("completion/tree.py", "webhook replay"): "the name of a command",
    ("completion/tree.py", "webhook verify"): "the name of a command",
    ("app.py", "auth switch"): "the name of a command",
    ("app.py", "auth logout"): "the name of a command",
    ("app.py", "tx "): "the name of a command",
    ("app.py", "user "): "the name of a command",
    ("app.py", "webhook "): "the name of a command",
    ("app.py", "batch "): "the name of a command",
    ("app.py", "journal "): "the name of a command",
    ("app.py", "auth status"): "the name of a command",
    ("app.py", "config "): "the name of a command",
    ("app.py", "sandbox "): "the name of a command",
    ("app.py", "completion "): "the name of a command",
    ("client/http.py", "Bearer {"): "a header",
    ("config/credentials.py", "# Written by"): "a comment in credentials.toml",
    ("config/profiles.py", "value = {"): "TOML",
    ("contract/operations.py", "{name} needs an id"): "an assertion",
    ("client/connection.py", "Server disconnected"): "httpcore's own sentence",
    ("loopback.py", "421 Misdirected"): "a status line",
    ("main.py", "escrowctl {local}"): "the name of a command",
    ("main.py", '{{"version"'): "the document of --version",
    ("main.py", "escrowctl {version}"): "the line of --version",
    ("post_once.py", "no complete answer"): "never shown",
    ("webhooks/receiver.py", "413 Content"): "a status line",
    ("webhooks/receiver.py", "405 Method"): "a status line",
    ("webhooks/receiver.py", "503 Service"): "a status line",
    ("webhooks/signing.py", "it was verified"): "an assertion",
    ("webhooks/spool.py", "JOIN forwards"): "SQL",
    ("webhooks/spool.py", "trusted_schema"): "SQL",
}
"""Texts that are no messages, by module and start of the text, each with what it is."""

_WORD = re.compile(r"[A-Za-z]{2,}")
_SQL = re.compile(
    r"\s*\(?(SELECT|INSERT|UPDATE|CREATE|DELETE|ALTER|DROP|PRAGMA|BEGIN|VACUUM|FROM|origin IS|WHERE|AND|ORDER)\b"
)
_HELP = {"Option", "Argument", "Typer", "compile", "cast", "TypeVar", "getLogger", "encode"}


class Template(NamedTuple):
    """One text of the source; `module` is its path in escrowctl/, `text` has placeholders in braces."""

    module: str
    text: str


@cache
def list_templates() -> tuple[Template, ...]:
    """Return every template once, in the order of modules and lines."""
    return tuple(dict.fromkeys(template for path in sorted(PRODUCT.rglob("*.py")) for template in _templates_of(path)))


def _templates_of(path: Path) -> list[Template]:
    module = path.relative_to(PRODUCT).as_posix()
    if any(fnmatchcase(module, pattern) for pattern in NO_MODULES):
        return []
    finder = _Finder()
    finder.visit(ast.parse(path.read_text()))
    not_meant = tuple(start for name, start in NO_MESSAGES if name == module)
    return [Template(module, text) for text in finder.found if _is_prose(text) and not text.startswith(not_meant)]


class _Finder(ast.NodeVisitor):
    """Collects the texts of a module that may be printed, with placeholders in braces."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def visit_Expr(self, node: ast.Expr) -> None:
        # A string that is a statement documents.
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Nothing of an assertion is printed."""

    def visit_Compare(self, node: ast.Compare) -> None:
        """What a text is compared with is not printed."""

    def visit_arg(self, node: ast.arg) -> None:
        """An annotation is not printed."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for part in (*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body):
            self.visit(part)

    def visit_Assign(self, node: ast.Assign) -> None:
        # Aliases of types, some with names in quotes, and lists of public names.
        is_alias = isinstance(node.value, ast.Subscript) or (
            isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.BitOr)
        )
        if not is_alias:
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _HELP or name.startswith("execute"):
            return
        named = [each.value for each in node.keywords if each.arg not in ("help", "metavar")]
        for part in (*named, *node.args, node.func):
            self.visit(part)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)

    def visit_match_case(self, node: ast.match_case) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> None:
        self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self.found.append("".join(_part(part) for part in node.values))
        for part in node.values:
            if not isinstance(part, ast.Constant):
                self.visit(part)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.found.append(node.value.replace("{", "{{").replace("}", "}}"))


def _part(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value).replace("{", "{{").replace("}", "}}")
    assert isinstance(part, ast.FormattedValue)
    return f"{{{_placeholder(part.value)}}}"


def _placeholder(value: ast.expr) -> str:
    """Return the last name in an expression: `reason` for `self.reason`, `quote` for `quote(text)`."""
    match value:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name.strip("_")
        case ast.Call(func=ast.Name("str" | "len" | "repr" | "int"), args=[inner]):
            return _placeholder(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr="join" | "lower" | "upper" | "strip")):
            return _placeholder(inner) if not isinstance(inner, ast.Constant) else "..."
        case ast.Call(func=inner) | ast.Subscript(value=inner):
            return _placeholder(inner)
        case _:
            return "..."


def _is_prose(text: str) -> bool:
    """Whether a text has two words or more, one of them literal."""
    literal = re.sub(r"\{[^{}]*\}", " 0 ", text)
    if _SQL.match(literal) or not _WORD.search(literal):
        return False
    return len(re.findall(r"[A-Za-z]{2,}|\b0\b", literal)) > 1 and " " in text.strip()
