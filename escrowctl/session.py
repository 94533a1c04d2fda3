"""The context of a command: the service, the client, the journal, the console and the prompt.

Nothing costly is imported or opened until a command uses it.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING

from escrowctl.errors import ErrorCode, EscrowctlError, Hint, Invocation, Outcome, command, why_unprinted
from escrowctl.options import SharedOptions
from escrowctl.output.console import Console
from escrowctl.runtime import Runtime
from escrowctl.signals import Signals

if TYPE_CHECKING:
    from pathlib import Path

    import typer

    from escrowctl.client.connection import Connection, DrawWait
    from escrowctl.client.http import Exchange, Request
    from escrowctl.client.reader import Reader
    from escrowctl.client.retry import Retry
    from escrowctl.client.trace import Trace
    from escrowctl.completion.cache import Names
    from escrowctl.config.folders import Folders
    from escrowctl.config.keys import KnownKeys
    from escrowctl.config.service import Service
    from escrowctl.config.settings import LineValues, Resolver
    from escrowctl.contract.json import JsonValue
    from escrowctl.contract.redaction import Secret
    from escrowctl.journal.journal import Journal
    from escrowctl.output.view import View
    from escrowctl.prompt import Prompt
    from escrowctl.sandbox.ownership import ServedSandbox
    from escrowctl.sandbox.service import Sandbox
    from escrowctl.writes.pipeline import Pipeline
    from escrowctl.writes.writer import Writer


def session_of(context: "typer.Context") -> "Session":
    """Return the session that `main` handed to the command tree."""
    session = context.find_object(Session)
    assert session is not None, "main always passes one"
    return session


class Session:
    """One run of the program."""

    def __init__(self, runtime: Runtime, signals: Signals) -> None:
        self.runtime = runtime
        self.signals = signals
        self.options = SharedOptions()
        self.words: tuple[str, ...] = ()
        """The words of the line after the program's name."""
        self.command = ""
        """The command as far as it was recognised, such as `escrowctl config set`."""
        self.defects: list[BaseException] = []
        """Defects of escrowctl that did not end the run, for main to report."""

    @cached_property
    def console(self) -> Console:
        """The console, with the options of this run."""
        runtime = self.runtime
        return Console(
            *(runtime.stdout, runtime.stderr, runtime.environ, self.options),
            now=runtime.now,
            # If no key is known yet, asking for keys imports nothing.
            keys=lambda: self.__dict__.get("keys", ()),
        )

    @cached_property
    def prompt(self) -> "Prompt":
        """Questions to the person at the terminal."""
        from escrowctl.prompt import Prompt

        return Prompt(self.runtime, self.signals, self.options, self.console)

    def show(self, view: "View", *, done: str | None = None, facts: "Mapping[str, object] | None" = None) -> None:
        """Show one view. `done` and `facts` describe a write that was done, for the error if printing fails.

        Raises EscrowctlError: `RESULT_NOT_PRINTED` after a write that was done; `BAD_VALUE` for `-q` and a
        read of any shape without an id.
        """
        if done is None and view.whole and self.options.quiet and not self.options.fields and view.items != ():
            view.require_ids()
        with self.accounting_for(done, facts):
            self.console.show(view)

    def report_traceback(self, error: BaseException) -> None:
        """Write a traceback."""
        import traceback

        with suppress(Exception):
            self.learn_stored_keys()
        self.console.report("".join(traceback.format_exception(error)).rstrip())

    @cached_property
    def keys(self) -> "KnownKeys":
        """The known API keys: no output on stderr contains one."""
        from escrowctl.config.keys import KnownKeys

        return KnownKeys(self.words, self.runtime.environ)

    def keep_secret(self, secret: "Secret") -> None:
        """Remember a key, so that no output shows it, and forbid core dumps, which would contain it.

        Raises EscrowctlError: `BAD_VALUE` if it is on the command line, `BAD_CONFIG` if in a variable not for keys.
        """
        from escrowctl.runtime import forbid_core_dumps

        forbid_core_dumps()
        self.keys.learn([secret.reveal()])
        self.keys.refuse_misplaced()

    def learn_stored_keys(self) -> None:
        """Remember every stored key, so that a later message cannot quote one. Skipped if the service is known."""
        from escrowctl.config.file import CONFIG_NAME

        keys = self.keys
        if self.options.sandbox or "service" in self.__dict__:
            return
        with suppress(EscrowctlError):
            # If a key was typed as the config file's name, the default file must be read too.
            for config in {self.folders.config / CONFIG_NAME, self.resolver.config_path}:
                keys.learn_files(config, self.resolver.credentials.path)

    @cached_property
    def names(self) -> "Names":
        """The names that shells offer at TAB."""
        from escrowctl.completion.cache import Names

        return Names(lambda: self.folders.cache, sandbox=self.options.sandbox)

    def remember(self, kind: str, found: "Mapping[str | None, JsonValue]") -> None:
        """Store ids of a kind (`transaction`, `user`) for the shells to offer. Maps id to status, or None."""
        if self.options.base_url is None:
            self.names.add_ids(kind, found, self.service)

    def remember_profiles(self, *, default: str | None = None) -> None:
        """Store the profiles of the default config file, and the name of its default one, for the shells to offer."""
        with suppress(EscrowctlError):
            if (config := self.resolver.config) is not None and self.options.config is None:
                self.names.set_profiles(config.profiles, default or config.default_profile)

    def next_step(self, command: str) -> None:
        """Suggest the command that usually follows."""
        self.console.note("next", f"{self.invocation} {command}", word="next")

    @contextmanager
    def accounting_for(self, done: str | None, facts: "Mapping[str, object] | None" = None) -> Iterator[None]:
        """Raise `RESULT_NOT_PRINTED`, which quotes `done`, if the block cannot print the result of a write."""
        try:
            yield
        except Exception as error:
            if done is None:
                raise
            if self.options.debug:
                self.report_traceback(error)
            raise EscrowctlError(
                ErrorCode.RESULT_NOT_PRINTED,
                f"{done}, but escrowctl could not print the result: {why_unprinted(error)} Do not repeat this command.",
                outcome=Outcome.DONE,
                facts=facts or {},
            ) from error

    @property
    def invocation(self) -> Invocation:
        """The start of a command to paste."""
        from escrowctl.invocation import read_invocation

        return read_invocation(self.runtime, self.options)

    @cached_property
    def folders(self) -> "Folders":
        """The config, state and cache folders of this run; each is looked up at its first use."""
        from escrowctl.config.folders import Folders

        return Folders(self.runtime.environ)

    @cached_property
    def line(self) -> "LineValues":
        """The values of the shared options that select the service."""
        from escrowctl.config.settings import LineValues

        options = self.options
        return LineValues(options.profile, options.base_url, options.config, options.timeout)

    @cached_property
    def resolver(self) -> "Resolver":
        """Finds settings and their sources. Not for `--sandbox`, whose settings are fixed."""
        from escrowctl.config.settings import Resolver

        return Resolver(self.line, self.runtime.environ, self.folders)

    @cached_property
    def service(self) -> "Service":
        """The service of this run. A note announces it once if it is live or the sandbox.

        Raises EscrowctlError: `NOT_CONFIGURED`, `KEY_MISSING`; `BAD_VALUE`, `BAD_CONFIG` for bad or conflicting values.
        """
        if self.options.sandbox:
            service = self._sandbox_service()
            self.console.note("sandbox", "built in, no real money", word="sandbox")
            return service
        try:
            service = self.resolver.resolve()
        except EscrowctlError as error:
            if error.code is ErrorCode.NOT_CONFIGURED:
                error.hints = self._ways_on()
            raise
        self.keep_secret(service.key)
        service.refuse_key_in_names()
        self.remember_profiles()
        if service.live:
            self.console.note("live", f"{service.name}, {service.origin}", word="live", important=True)
        return service

    @cached_property
    def reader(self) -> "Reader":
        """The reader for this run's service."""
        from escrowctl.client.reader import Reader

        return Reader(self.service, self._connection, self._retry, self.runtime, self.signals)

    @contextmanager
    def open_reader(self, service: "Service") -> "Iterator[Reader]":
        """Yield a reader for another service than this run's. Its connection is closed after the block."""
        from escrowctl.client.reader import Reader

        self.keep_secret(service.key)
        with closing(self.opener(service, self.console.draw_wait)()) as connection:
            yield Reader(service, connection, self._retry, self.runtime, self.signals)

    @cached_property
    def writer(self) -> "Writer":
        """Sends writes to this run's service and records them. Creating it opens the journal."""
        from escrowctl.writes.writer import Writer

        self.guard_live_writes()
        return Writer(
            self.service,
            self._connection,
            self.journal,
            retry=self._retry,
            runtime=self.runtime,
            signals=self.signals,
            report_defect=self.defects.append,
        )

    @cached_property
    def pipeline(self) -> "Pipeline":
        """Carries out writes at this run's service."""
        # First: it imports httpx. Beneath more frames, the interpreter would map and unmap a stack page 400 times.
        reader = self.reader
        from escrowctl.writes.pipeline import Pipeline

        return Pipeline(self.service, reader=reader, writer=self.writer, signals=self.signals, runtime=self.runtime)

    @cached_property
    def journal(self) -> "Journal":
        """The journal of this run, created if needed. Raises `JOURNAL_UNUSABLE`, also if settings require another."""
        return self.open_journal(reading=False)

    @cached_property
    def journal_to_read(self) -> "Journal":
        """The same journal, only for reading: nothing is created, and the disk may be read-only."""
        return self.open_journal(reading=True)

    def journal_to_list(self) -> "Journal":
        """Return the journal to read, with a note if there is none. Raises `JOURNAL_UNUSABLE` if it is incomplete."""
        journal = self.journal_to_read
        journal.require_complete()
        if not journal.storage.is_there:
            self.console.note("no_journal", f"there is no journal yet: the first write creates {journal.storage.where}")
        return journal

    def deliver_events(self) -> None:
        """Deliver the events of a sandbox in this process. Takes a few seconds at most."""
        deliver = getattr(self.__dict__.get("_sandbox"), "deliver", None)
        if deliver is not None:
            deliver()

    def close(self) -> None:
        """Close the connection, journals, sandbox and console. A later use opens them again."""
        for name in ("_connection", "journal", "journal_to_read", "_sandbox", "console"):
            opened = self.__dict__.pop(name, None)
            if opened is not None and hasattr(opened, "close"):
                opened.close()

    @cached_property
    def _retry(self) -> "Retry":
        from escrowctl.client.retry import Retry

        return Retry(self.runtime, self.signals, partial(self.console.note, "waiting"))

    @cached_property
    def _connection(self) -> "Connection":
        return self.opener(self.service, self.console.draw_wait)()

    def guard_live_writes(self) -> None:
        """Check for live writes: a CI job without history raises `JOURNAL_UNUSABLE`, unshared locks cause a warning."""
        self.require_history(self.service)
        if not self.service.live:
            return
        from escrowctl.journal.sqlite.mounts import find_unshared_locks

        if (why := find_unshared_locks(self.folders.state)) is not None:
            self.console.warn("unshared_locks", f"the journal's folder {why}")

    def require_history(self, service: "Service") -> None:
        """Raise `JOURNAL_UNUSABLE` in a CI job whose journal has no write to this live service and is not pinned."""
        if not (service.live and self.runtime.environ.get("CI")) or self._pins:
            return
        from escrowctl.writes.intents import require_history

        with closing(self.open_journal(reading=True)) as journal:
            require_history(service, journal)

    @cached_property
    def _pins(self) -> tuple[tuple[str, str], ...]:
        """The journal ids that settings require; none for the sandbox."""
        return () if self.options.sandbox else self.resolver.find_pins()

    def open_journal(self, *, reading: bool, required: bool = True) -> "Journal":
        """Open this machine's journal; the caller closes it. `required=False`: even if settings require another."""
        from escrowctl.journal.opening import open_journal

        now, pins = self.runtime.now, self._pins if required else ()
        return open_journal(self.journal_folder, now=now, reading=reading, pins=pins)

    @property
    def journal_folder(self) -> "Path":
        """The folder of this run's journal."""
        if not self.options.sandbox:
            self.folders.require_safe_home()
        return self.sandbox_folder if self.options.sandbox else self.folders.state

    @property
    def sandbox_folder(self) -> "Path":
        """The folder of the sandbox's store and journal."""
        return self.folders.state / "sandbox"

    @cached_property
    def _sandbox(self) -> "Sandbox | ServedSandbox":
        """The sandbox: in this process, or in the process of `sandbox serve`."""
        from escrowctl.sandbox.ownership import find_server
        from escrowctl.sandbox.service import open_sandbox

        return find_server(self.sandbox_folder) or open_sandbox(self.sandbox_folder, now=self.runtime.now)

    def _sandbox_service(self) -> "Service":
        from escrowctl.config.service import describe_sandbox
        from escrowctl.config.settings import refuse_other_service

        refuse_other_service(self.line)
        sandbox = self._sandbox
        served_at = getattr(sandbox, "base_url", None)
        return describe_sandbox(self.line.timeout, identity=sandbox.identity, key=sandbox.key, served_at=served_at)

    def opener(self, service: "Service", draw: "DrawWait | None" = None) -> "Callable[[], Connection]":
        """Return a function that opens a connection, for use in one thread. `draw` only if a single thread works."""
        from escrowctl.client.connection import connect, connect_in_process, make_service_context

        app = getattr(self._sandbox, "app", None) if service.sandbox else None
        if app is not None:
            return lambda: connect_in_process(app, service.key, observe=self._observe)
        context = make_service_context(service)
        return partial(connect, service, context, monotonic=self.runtime.monotonic, observe=self._observe, draw=draw)

    @property
    def is_in_process(self) -> bool:
        """Whether the service is a sandbox in this process."""
        return self.service.sandbox and getattr(self._sandbox, "app", None) is not None

    def _observe(self, request: "Request", exchange: "Exchange", seconds: float) -> None:
        self.console.erase()
        if self.options.verbose or self.options.debug:
            self._trace.show(request, exchange, seconds)
        if exchange.answer is not None and exchange.answer.announces_end:
            self._trace.announce_end(request, exchange.answer)

    @cached_property
    def _trace(self) -> "Trace":
        from escrowctl.client.trace import Trace

        warn = partial(self.console.note, "deprecated", word="warning")
        return Trace(self.console.trace, warn, whole=self.options.debug, now=self.runtime.now)

    def _ways_on(self) -> tuple[Hint, ...]:
        """The hints if nothing is configured. No --sandbox for `journal`: its journal does not record real money."""
        login = command("auth login", "with an account", bare=True)
        rehearsed = Hint(shlex.join([*self.runtime.program, "--sandbox", *self.words]), "without an account")
        return (login,) if self.command.split()[1:2] == ["journal"] else (login, rehearsed)
