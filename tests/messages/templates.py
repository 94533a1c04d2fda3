"""Find every message template of escrowctl: each literal or f-string in its source that reads as words.

Docstrings, annotations, texts of `--help`, SQL and patterns are recognised and left out; `NO_MESSAGES` names the
other texts that are no messages. `instrument` makes a module report each template that it renders.
"""

import ast
import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

PRODUCT = Path(__file__).parents[2] / "escrowctl"

NO_MODULES = {
    "completion/scripts.py": "shell scripts",
    "sandbox/openapi*.py": "the sandbox's OpenAPI document",
    "sandbox/administration.py": "bodies of the sandbox's replies (tests/sandbox)",
    "sandbox/idempotency.py": "bodies of the sandbox's replies (tests/sandbox)",
    "sandbox/magic.py": "bodies of the sandbox's replies, and a list (tests/sandbox)",
    "sandbox/variants.py": "bodies of the sandbox's replies (tests/sandbox)",
    "sandbox/seed.py": "SQL",
    "sandbox/app.py": "bodies of the sandbox's replies (tests/sandbox)",
    "sandbox/commits.py": "bodies of the sandbox's replies (tests/sandbox)",
    "sandbox/endpoints.py": "bodies of the sandbox's replies (tests/sandbox)",
    "sandbox/delivery_calls.py": "bodies of the sandbox's replies (tests/sandbox)",
    "sandbox/dialling.py": "why an attempt failed, in its replies (tests/sandbox)",
    "sandbox/http.py": "bodies of the sandbox's replies (tests/sandbox)",
    "sandbox/bodies.py": "bodies of the sandbox's replies (tests/sandbox)",
    "sandbox/pages.py": "bodies of the sandbox's replies (tests/sandbox)",
    "sandbox/records.py": "bodies of the sandbox's replies (tests/sandbox)",
    "sandbox/transactions.py": "bodies of the sandbox's replies (tests/sandbox)",
    "contract/currencies.py": "lists of currency codes",
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
    ("journal/sqlite/head.py", "escrowctl-head"): "the format of the head file",
    ("journal/sqlite/reading.py", "r.sequence"): "SQL",
    ("journal/sqlite/reading.py", "{condition} AND"): "SQL",
    ("journal/sqlite/reading.py", "{column} IN"): "SQL",
    ("journal/sqlite/reading.py", "sent_at"): "SQL",
    ("journal/sqlite/reading.py", "? IN"): "SQL",
    ("journal/sqlite/reading.py", "reference IS NULL"): "SQL",
    ("journal/sqlite/reading.py", "result_id = ?"): "SQL",
    ("journal/sqlite/schema.py", "  {name} TEXT"): "SQL",
    ("journal/sqlite/schema.py", " NOT NULL"): "SQL",
    ("journal/sqlite/schema.py", "{DROPPED}"): "SQL",
    ("journal/sqlite/transaction.py", "{name} = excluded"): "SQL",
    ("journal/sqlite/transaction.py", "operation = ?"): "SQL",
    ("app.py", "The operator's tool for an escrow service."): "--help",
    ("app.py", "Create, read and release"): "--help",
    ("app.py", "Look users up."): "--help",
    ("app.py", "Register endpoints; receive"): "--help",
    ("app.py", "Store, check and switch"): "--help",
    ("app.py", "See and change settings."): "--help",
    ("app.py", "Serve, inspect and empty"): "--help",
    ("app.py", "Print or install completion"): "--help",
    ("app.py", "List the writes sent"): "--help",
    ("options.py", "Shared options ("): "--help",
    ("completion/tree.py", "tx release"): "the name of a command",
    ("completion/tree.py", "webhook replay"): "the name of a command",
    ("completion/tree.py", "webhook verify"): "the name of a command",
    ("app.py", "auth switch"): "the name of a command",
    ("app.py", "auth logout"): "the name of a command",
    ("app.py", "journal {"): "the name of a command",
    ("client/http.py", "Bearer {"): "a header",
    ("config/credentials.py", "# Written by"): "a comment in credentials.toml",
    ("config/file.py", "(at end"): "a part of tomllib's own sentence, to replace it",
    ("config/profiles.py", "value = {"): "TOML",
    ("contract/operations.py", "{name} needs an id"): "an assertion",
    ("client/connection.py", "Server disconnected"): "httpcore's own sentence",
    ("loopback.py", "421 Misdirected"): "a status line",
    ("main.py", "escrowctl {local}"): "the name of a command",
    ("main.py", '{{"version"'): "the document of --version",
    ("main.py", "escrowctl {version}"): "the line of --version",
    ("sandbox/ownership.py", "announced while"): "an assertion",
    ("webhooks/forward.py", "no complete answer"): "never shown",
    ("webhooks/receiver.py", "413 Content"): "a status line",
    ("webhooks/receiver.py", "405 Method"): "a status line",
    ("webhooks/receiver.py", "503 Service"): "a status line",
    ("webhooks/signing.py", "it was verified"): "an assertion",
    ("webhooks/spool.py", "JOIN forwards"): "SQL",
    ("webhooks/spool.py", "journal_mode"): "SQL",
    ("webhooks/spool.py", "synchronous ="): "SQL",
    ("webhooks/spool.py", "trusted_schema"): "SQL",
    ("commands/webhook/listen.py", "it was queued"): "an assertion",
}
"""Texts that are no messages, by module and start of the text, each with what it is."""

_NEVER = "a guard for what the code before it excludes"
_OTHER_PROCESS = "needs another process at work; tests/faults and tests/e2e run them"
_SERVED = "of a sandbox that another process serves or broke; tests/sandbox"
_TOPIC = "a text of `escrowctl help`, folded; tests/cli/test_topics.py"
_SOURCE = "names a source in an error; a case prints another source"

NOT_PRINTED = {
    ("config/file.py", "use a file that you own"): "needs root; tests/cli/test_folders.py",
    ("files.py", "belongs to another user"): "needs root; tests/cli/test_folders.py",
    ("client/transport.py", "the system's trust store"): "needs a machine without certificates",
    ("client/http.py", "escrowctl was interrupted"): "needs a signal; tests/e2e/test_signals.py",
    ("commands/read.py", "standard input is not text"): "needs a stream that cannot be decoded",
    ("config/credentials.py", "the keyring, for"): _SOURCE,
    ("config/credentials.py", "no reply within"): "needs a keyring that hangs",
    ("contract/json.py", "holds more than"): "needs a reply of a million values",
    ("journal/*", "record {sequence} was changed"): "a damaged journal; tests/faults/test_damage.py",
    ("journal/*", "a newer escrowctl has"): "needs a newer version; tests/unit/test_journal.py",
    ("journal/*", "its two copies of the totals"): "a damaged journal; tests/faults/test_damage.py",
    ("errors.py", "the output was closed."): "needs a closed pipe; tests/e2e/test_streams.py",
    ("client/http.py", "the request cannot"): _NEVER,
    ("client/http.py", "escrowctl failed before"): "needs a defect between first byte and reply",
    ("client/transport.py", "{host} has no address"): "needs a resolver that returns nothing",
    ("commands/auth/account.py", "the typed URL"): _SOURCE,
    ("commands/auth/login.py", "the answer"): _SOURCE,
    ("commands/auth/login.py", "the profile name or"): "needs a key typed at a real terminal",
    ("commands/completion.py", "{path} cannot be written"): "needs a folder that root cannot write",
    ("commands/sandbox/deliveries.py", "the secret of"): "needs an output that fails after a rotation",
    ("commands/sandbox/calls.py", "the sandbox did not"): "needs a server that ends between two calls",
    ("commands/sandbox/calls.py", "the sandbox replied"): _NEVER,
    ("commands/several.py", ", {left} not read"): "needs a signal; tests/e2e/test_signals.py",
    ("commands/journal/resolve.py", "nothing was read."): _NEVER,
    ("commands/journal/transfer.py", "the journal {where}"): "needs a full disk after the journal is created",
    ("config/credentials.py", "{path}: [{name}] needs"): _NEVER,
    ("config/editing.py", "{link}: the layout of"): "needs a layout that tomlkit cannot change",
    ("config/folders.py", "the home folder"): _SOURCE,
    ("config/folders.py", "the folder {folder} cannot"): "needs a folder that root cannot create",
    ("config/profiles.py", "a table"): _SOURCE,
    ("config/profiles.py", "the name of a profile"): "needs a default_profile that is no text",
    ("config/profiles.py", "the path of a file that holds"): "needs an api_key_file that is no text",
    ("config/profiles.py", "the service's base URL;"): _TOPIC,
    ("config/profiles.py", "most that a UTC day"): _TOPIC,
    ("errors.py", ""): _TOPIC,
    ("config/file.py", "another process"): _OTHER_PROCESS,
    ("config/keys.py", "the base URL from"): _NEVER,
    ("config/settings.py", "--profile {name}"): _SOURCE,
    ("contract/operations.py", "not in the interface"): "data, for programs",
    ("files.py", "something else"): "needs a file of no known kind",
    ("journal/*", "make space in"): "needs a full disk; tests/faults/test_full_disk.py",
    ("journal/*", "another process"): _OTHER_PROCESS,
    ("journal/guards.py", "escrowctl waited"): _OTHER_PROCESS,
    ("journal/guards.py", "to see its result"): _OTHER_PROCESS,
    ("journal/sqlite/transaction.py", "record {sequence} does not match"): _NEVER,
    ("journal/sqlite/storage.py", "check the disk"): "a failing disk; tests/faults/test_full_disk.py",
    ("journal/sqlite/storage.py", "journal verify"): "a failing disk; tests/faults/test_full_disk.py",
    ("journal/*", "an earlier commit"): "a failing disk; tests/faults/test_full_disk.py",
    ("journal/*", 'its tables "entries"'): "a damaged journal; tests/faults/test_damage.py",
    ("journal/*", "the journal's lock file"): "needs a lock file that root cannot open",
    ("journal/*", "check the file: ls -l"): "needs a journal that root cannot open",
    ("journal/*", "the create under the reference"): "needs a create without an id under a reference",
    ("journal/*", "an earlier {verb}"): "needs a write without an id",
    ("journal/*", "was {done}"): "needs an expired claim",
    ("journal/*", "it was in flight"): "needs a process killed before an export",
    ("journal/*", "two copies of this"): "needs a copied journal that went on",
    ("journal/*", "the export "): "needs a copied journal that went on",
    ("commands/sandbox/service.py", "an event could not be sent"): _SERVED,
    ("commands/sandbox/service.py", "sandbox deliveries"): _SERVED,
    ("commands/sandbox/service.py", "to see it"): _SERVED,
    ("sandbox/*", ""): _SERVED,
    (
        "commands/sandbox/playing.py",
        "the step reported",
    ): "needs a scenario that fails late; tests/sandbox/test_scenarios.py",
    ("loopback.py", ""): _SERVED,
    ("ready_file.py", "the ready file"): _SERVED,
    ("commands/webhook/listen.py", "another webhook listen"): _OTHER_PROCESS,
    ("commands/journal/resolve.py", "{name} is still recorded as {words}"): "needs a decision declined at a terminal",
    ("commands/webhook/verify.py", "the answer"): _SOURCE,
    ("webhooks/forward.py", "no answer within"): "needs a target that hangs; tests/cli/test_webhook_listen.py",
    ("runtime.py", "this terminal would show"): "needs a terminal that cannot hide its echo",
    ("writes/create.py", "journal show {name}"): "needs a create settled without an id",
    ("batch/run.py", "another process works on"): "needs a row whose entry is taken over while it is sent",
    ("commands/batch/progress.py", "line {line}: what became"): "needs an entry taken over while it is sent",
    ("batch/flight.py", "nothing was sent: the run"): "stored",
    ("batch/flight.py", "; the next attempt"): "needs a run that ends while a row waits",
    ("batch/run.py", "the service reported"): "stored; tests/batch/test_release.py",
    ("batch/crew.py", "the process that sends"): "needs a process that ends before its first row",
    ("batch/crew.py", "ended with code"): "needs a process that ends by itself",
    ("commands/batch/summary.py", "{name}: {all} done."): "needs a signal during the last row",
    ("batch/plan.py", "{name} has {rows} too"): "needs a plan with rows that no command stored",
    ("batch/worker.py", ""): "printed by another process; tests/batch/test_rare.py",
    ("commands/batch/overlap.py", "journal show"): "needs an unknown entry of another API key",
    ("commands/batch/progress.py", "   not sent"): "needs a long run with rows that are not sent",
    ("commands/times.py", "{...} min"): "needs a long run",
    ("client/connection.py", "the deadline passed"): "replaced by the seconds; tests/sandbox/test_faults.py",
    ("client/connection.py", "waiting for"): "drawn and erased; tests/e2e/test_waiting.py",
    ("commands/tx/wait.py", "waiting for"): "drawn and erased; tests/cli/test_waiting.py",
    ("commands/tx/wait.py", "{left} escrows"): "drawn and erased; tests/cli/test_waiting.py",
    ("commands/batch/progress.py", "{name} in the process"): "for the crash report",
    ("writes/create.py", "{name} is done ("): "needs a create settled without an id",
    ("writes/kinds.py", "{{id}} may or may not"): "a pattern; printed with its id",
    ("writes/outcome.py", "was not sent"): "needs a resend without a connection",
    (
        "writes/resolve.py",
        "the service reports {resource_id} as {status}, but",
    ): "needs two unknown releases of one escrow",
    ("writes/resolve.py", " and {...} more"): "needs many equal escrows in a list",
    ("writes/inspection.py", "an unknown amount"): _NEVER,
    ("writes/writer.py", "escrowctl stopped before"): "needs a defect before the first byte",
}
"""Templates that no case prints, by module pattern and start of the text, each with the reason."""

_WORD = re.compile(r"[A-Za-z]{2,}")
_SQL = re.compile(
    r"\s*\(?(SELECT|INSERT|UPDATE|CREATE|DELETE|ALTER|DROP|PRAGMA|BEGIN|VACUUM|FROM|origin IS|WHERE|AND|ORDER)\b"
)
_HELP = {"Option", "Argument", "Typer", "compile", "cast", "TypeVar", "getLogger", "encode"}


class Template(NamedTuple):
    """One text of the source; `module` is its path in escrowctl/, `text` has placeholders in braces."""

    module: str
    text: str


def list_templates() -> tuple[Template, ...]:
    """Return every template once, in the order of modules and lines."""
    found = dict.fromkeys(
        template for path in sorted(PRODUCT.rglob("*.py")) for template in templates_of(module_of(path))
    )
    return tuple(found)


@cache
def templates_of(module: str) -> tuple[Template, ...]:
    """Return a module's templates in the order of its lines."""
    if any(fnmatchcase(module, pattern) for pattern in NO_MODULES):
        return ()
    finder = _Finder(module)
    finder.visit(ast.parse((PRODUCT / module).read_text()))
    return tuple(finder.found)


def instrument(module: str, function: str) -> ast.Module:
    """Return the module's tree with each template wrapped: `function(number, text)`, in the order of `templates_of`."""
    tree = ast.parse((PRODUCT / module).read_text())
    if not any(fnmatchcase(module, pattern) for pattern in NO_MODULES):
        _Finder(module, function).visit(tree)
    return ast.fix_missing_locations(tree)


def module_of(path: Path) -> str:
    """Return a file's path within escrowctl/."""
    return path.relative_to(PRODUCT).as_posix()


class _Finder(ast.NodeTransformer):
    """Collects templates, and wraps each in a call where `function` is given."""

    def __init__(self, module: str, function: str = "") -> None:
        self.module = module
        self.function = function
        self.found: list[Template] = []

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        # A string that is a statement documents.
        return node if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        # What a text is compared with is not printed.
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value:
            node.value = self.visit(node.value)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.args.defaults = [self.visit(default) for default in node.args.defaults]
        node.args.kw_defaults = [default and self.visit(default) for default in node.args.kw_defaults]
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        # Aliases of types, some with names in quotes, and lists of public names.
        is_alias = isinstance(node.value, ast.Subscript) or (
            isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.BitOr)
        )
        return node if is_alias else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _HELP or name.startswith("execute"):
            return node
        node.keywords = [self.visit(each) if each.arg not in ("help", "metavar") else each for each in node.keywords]
        node.args = [self.visit(each) for each in node.args]
        node.func = self.visit(node.func)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        node.value = self.visit(node.value)
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        node.value = self.visit(node.value)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        text = "".join(_part(part) for part in node.values)
        wrapped = self._add(node, text)
        node.values = [part if isinstance(part, ast.Constant) else self.visit(part) for part in node.values]
        return wrapped

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return (
            self._add(node, node.value.replace("{", "{{").replace("}", "}}")) if isinstance(node.value, str) else node
        )

    def _add(self, node: ast.expr, text: str) -> ast.expr:
        if not _is_prose(text) or any(
            module == self.module and text.startswith(start) for module, start in NO_MESSAGES
        ):
            return node
        self.found.append(Template(self.module, text))
        if not self.function:
            return node
        number = ast.Constant(len(self.found) - 1)
        return ast.copy_location(ast.Call(ast.Name(self.function, ast.Load()), [number, node], []), node)


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
