"""The shared options, which every command accepts before and after its name.

Typer accepts an option only if the command declares the option. Declaring the shared options on every command would
cost each start some 30 ms. So a command declares them only when it is parsed or prints its help.
"""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from escrowctl.errors import EscrowctlError, bad_value

COLOR_CHOICES = ("auto", "always", "never")
FIELD_NAMES = (
    *("id", "status", "amount", "currency", "created", "url", "events", "status_before", "status_after", "verified"),
    *("entry", "sent", "operation", "state", "reference", "profile", "operator", "reason", "released", "at"),
    *("host", "type", "resource", "forward"),
    *("batch", "verb", "source", "rows", "outcome", "done", "refused", "unknown", "not_sent"),
)
"""The names that `--fields` accepts: known fields of records, and columns of the journal, events and batches."""

_SHARED_OPTIONS_LINE = "Shared options (--json, -p NAME, --sandbox, ...): escrowctl help options"


class SharedOptions:
    """The values of the shared options; filled while the line is parsed."""

    def __init__(self) -> None:
        self.profile: str | None = None
        self.sandbox = False
        self.base_url: str | None = None
        self.config: str | None = None
        self.timeout: float | None = None
        self.json = False
        self.table = False
        self.csv = False
        self.color = "auto"
        self.quiet = False
        self.verbose = False
        self.debug = False
        self.fields: tuple[str, ...] = ()
        self.raw = False
        self.no_input = False
        self.version = False
        self.given: set[str] = set()
        """Names of the options with a value that were read so far."""


def _store_value(context: Any, option: Any, value: Any) -> None:
    if value is None or value is False:
        return
    options: SharedOptions = context.find_root().obj.options
    if option.name in options.given:
        # Once before the command and once after it also counts as twice.
        raise _make_given_twice_error(option)
    if not option.is_flag:
        options.given.add(option.name)
    setattr(options, option.name, value)


def _make_given_twice_error(option: Any) -> EscrowctlError:
    return bad_value(f"{option.opts[0]} is given twice: give it once.")


def _store_color(context: Any, option: Any, value: Any) -> None:
    if value is not None and value not in COLOR_CHOICES:
        raise bad_value(f'--color "{value}" is not one of {", ".join(COLOR_CHOICES)}.')
    _store_value(context, option, value)


def _store_fields(context: Any, option: Any, value: Any) -> None:
    if value is None:
        return
    names = tuple(name.strip() for name in value.split(","))
    for name in names:
        if name not in FIELD_NAMES and not (name.startswith("/") and len(name) > 1):
            example = name.replace(".", "/") if name.replace(".", "").isidentifier() else "created_at"
            raise bad_value(
                f'--fields "{value}": "{name}" is not one of {", ".join(FIELD_NAMES)}; '
                f"name any other field by its JSON Pointer, such as /{example}."
            )
    _store_value(context, option, names)


def _store_format(context: Any, option: Any, value: Any) -> None:
    _store_value(context, option, value)
    options: SharedOptions = context.find_root().obj.options
    given = [name for name in ("json", "raw", "quiet", "table", "csv") if getattr(options, name)]
    if value and len(given) > 1 and (options.table or options.csv):
        raise bad_value(f"--{given[0]} and --{given[-1]} cannot be combined: each sets the output format.")


def _store_version_flag(context: Any, option: Any, value: Any) -> None:
    _store_value(context, option, value)
    if value:
        raise typer.Exit


def _show_help(context: Any, _option: Any, value: Any) -> None:
    if value:
        context.find_root().obj.console.write_page(context.get_help())
        raise typer.Exit


def make_shared_options() -> list[TyperOption]:
    """Return new instances of the shared options, for one command."""

    def option(*names: str, store: Any = _store_value, **settings: Any) -> TyperOption:
        return TyperOption(param_decls=list(names), callback=store, expose_value=False, **settings)

    flag = partial(option, is_flag=True, default=False)
    return [
        option("--profile", "-p", help="The profile in config.toml to use.", metavar="NAME"),
        flag("--sandbox", help="Use the built-in sandbox: no network, no real money."),
        option("--base-url", help="The service's base URL.", metavar="URL"),
        option("--config", help="Use this config file.", metavar="FILE"),
        option("--timeout", help="Time limit for one attempt of a request.", metavar="SECONDS", type=float),
        flag("--json", help="Print JSON on stdout, and JSON lines on stderr.", store=_store_format),
        flag("--table", help="Print tables even into a pipe, such as to less.", store=_store_format),
        flag("--csv", help="Print CSV with a header.", store=_store_format),
        option(
            "--fields", help="Show these fields only, such as id,status,amount.", metavar="NAMES", store=_store_fields
        ),
        flag("--raw", help="Print the service's complete reply as JSON, also that of an error.", store=_store_format),
        option("--color", help="Use colors: auto, always or never.", metavar="WHEN", store=_store_color),
        flag("--quiet", "-q", help="Print only ids or values of --fields; few notes.", store=_store_format),
        flag("--verbose", "-v", help="Print a line for each request."),
        flag("--debug", help="Print requests and replies (secrets as ***), and tracebacks."),
        flag("--no-input", help="Never ask; fail if a confirmation is needed."),
        flag("--version", "-V", help="Print the version.", store=_store_version_flag, is_eager=True),
        flag("--help", "-h", help="Show the help of the command.", store=_show_help, is_eager=True),
    ]


class _SharedOptionsMixin:
    """Mixin of a command: adds the shared options to the command's own options at the first use."""

    _all_params: list[Any] | None = None

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the command's parameters, then the shared options."""
        if self._all_params is None:
            own = super().get_params(ctx)  # type: ignore[misc] # the class it is mixed into
            self._all_params = [*own, *make_shared_options()]
        return self._all_params

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse `args` and return the words that are left. Raises `BAD_VALUE` if an option is given two values."""
        ctx.find_root().obj.command = ctx.command_path
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))  # type: ignore[attr-defined] # as above
        for option in order:
            if order.count(option) > 1 and not option.multiple and not getattr(option, "is_flag", True):
                raise _make_given_twice_error(option)
        rest: list[str] = super().parse_args(ctx, args)  # type: ignore[misc] # as above
        return rest


class SharedCommand(_SharedOptionsMixin, TyperCommand):
    """A command that also accepts the shared options."""

    def collect_usage_pieces(self, _ctx: Any) -> list[str]:
        """Return the words after the command's name in the usage line. Brackets in a metavar mean: optional."""
        return ["[OPTIONS]", *(str(one.metavar) for one in self.params if one.param_type_name == "argument")]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the command's arguments and options as one list, and a line that names the shared options."""
        with formatter.section("Options"):
            parameters: list[Any] = self.params
            # The usage line says which arguments are required.
            if rows := [
                (one.metavar, one.help) if one.param_type_name == "argument" else one.get_help_record(ctx)
                for one in parameters
                if not getattr(one, "hidden", False)
            ]:
                formatter.write_dl(rows)
            formatter.write_text(_SHARED_OPTIONS_LINE)


class SharedGroup(_SharedOptionsMixin, TyperGroup):
    """A group of commands that also accepts the shared options."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, and a line that names the shared options."""
        self.format_commands(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text(_SHARED_OPTIONS_LINE)


IdsArgument = Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Transaction ids, or - for stdin.")]
ReasonOption = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="A reason to store in the journal.")]
KeyOption = Annotated[
    str | None, typer.Option("--idempotency-key", metavar="KEY", help="Send this key. A repeat with it sends nothing.")
]
DataOption = Annotated[
    str | None, typer.Option("--data", metavar="JSON", help="A JSON object for the body; @FILE or @- reads one.")
]
AllowDuplicateOption = Annotated[
    list[str] | None,
    typer.Option("--allow-duplicate", metavar="ENTRY", help="Send although the outcome of ENTRY is unknown."),
]
ExpectAmountOption = Annotated[
    str | None, typer.Option("--expect-amount", metavar="AMOUNT", help="Refuse unless each escrow has this amount.")
]
ExpectCurrencyOption = Annotated[
    str | None, typer.Option("--expect-currency", metavar="CODE", help="Refuse unless each escrow has this currency.")
]
DeadlineOption = Annotated[str, typer.Option("--deadline", metavar="TIME", help="How long --wait may take: 90s, 10m.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
AlreadySentOption = Annotated[
    bool, typer.Option("--already-sent", help="Record it as perhaps sent already; send nothing.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Check and print the request, but send nothing.")]
PortOption = Annotated[
    int, typer.Option(metavar="N", min=0, max=65_535, help="The port on 127.0.0.1; 0 takes any free port.")
]
ReadyFileOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the address here while the server runs (mode 0600).")
]
