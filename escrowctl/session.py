"""What a command is given: the service, the client, the journal, and ways to show and ask.

This is the one lazy door: nothing costly is imported or opened until a command asks for it.
"""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from escrowctl.errors import NOTHING_SENT, ErrorCode, EscrowctlError, Sending, bad_value
from escrowctl.options import SharedOptions
from escrowctl.output.console import Console, Manner
from escrowctl.signals import Signals
from escrowctl.surroundings import Surroundings

if TYPE_CHECKING:
    import typer

    from escrowctl.client.client import EscrowClient
    from escrowctl.client.transport import Wire
    from escrowctl.config.folders import Folders
    from escrowctl.config.service import Service
    from escrowctl.journal.journal import Journal
    from escrowctl.output.view import View
    from escrowctl.sandbox.service import Sandbox

SANDBOX_HOST = "sandbox.localhost"
"""Where requests to the in-process sandbox are addressed; nothing is ever resolved or connected."""


def session_of(context: "typer.Context") -> "Session":
    """Return the session that `main` handed to the command tree."""
    session = context.find_object(Session)
    assert session is not None, "main always passes one"
    return session


class Session:
    """One run of the program."""

    def __init__(self, surroundings: Surroundings, signals: Signals) -> None:
        self.surroundings = surroundings
        self.signals = signals
        self.options = SharedOptions()
        self.typed = ""
        """The line as it was typed after the program's name, for hints that repeat it."""

    # Speaking

    @cached_property
    def console(self) -> Console:
        """The console, in the manner that the line asks for."""
        options = self.options
        manner = Manner(options.json, options.quiet, options.verbose, options.debug, options.color, options.fields)
        around = self.surroundings
        return Console(around.stdout, around.stderr, around.environ, manner, now=around.now)

    def show(self, view: "View", *, done: str | None = None) -> None:
        """Show one thing. `done` says what has happened already, should it turn out unprintable."""
        with self.accounting_for(done):
            self.console.show(view)

    def report(self, text: str) -> None:
        """Write a traceback, the key starred in it."""
        if "service" in self.__dict__:
            text = text.replace(self.service.key.reveal(), "***")
        self.console.report(text)

    def next_step(self, command: str) -> None:
        """Suggest the command that usually follows."""
        self.console.note("next", f"{self.invocation} {command}", word="next")

    @contextmanager
    def accounting_for(self, done: str | None) -> Iterator[None]:
        """Turn failing to print the result of a write into an error (12) that says what is `done`."""
        from escrowctl.output.console import OutputClosedError

        try:
            yield
        except (OutputClosedError, EscrowctlError) as error:
            if done is None:
                raise
            why = error.message if isinstance(error, EscrowctlError) else "the output was closed."
            raise EscrowctlError(
                ErrorCode.RESULT_NOT_PRINTED, f"{done}. Do not do it again: {why}", sending=Sending.DONE
            ) from error

    # The service

    @property
    def invocation(self) -> str:
        """How a pasteable hint starts: the program, and the typed options that lead to this service."""
        options = self.options
        words = ["escrowctl", *(["--sandbox"] if options.sandbox else [])]
        for name, value in (("--config", options.config), ("-p", options.profile), ("--base-url", options.base_url)):
            words += [name, value] if value is not None else []
        return shlex.join(words)

    @cached_property
    def folders(self) -> "Folders":
        """The config and state folders of this run."""
        from escrowctl.config.folders import find_folders

        return find_folders(self.surroundings.environ)

    @cached_property
    def service(self) -> "Service":
        """The service of this run, announced once where it is live or the sandbox.

        Raises EscrowctlError: 4 where nothing is configured, 2 where values are bad or contradict.
        """
        if self.options.sandbox:
            service = self._sandbox_service()
            self.console.note("sandbox", "built in, no real money", word="sandbox")
            return service
        from escrowctl.config.settings import LineValues, Resolver

        options = self.options
        line = LineValues(options.profile, options.base_url, options.config, options.timeout)
        try:
            service = Resolver(line, self.surroundings.environ, self.folders).resolve()
        except EscrowctlError as error:
            raise self._with_ways_on(error) from error
        if service.live:
            self.console.note("live", f"{service.name}, {service.origin}", word="live", important=True)
        return service

    @cached_property
    def client(self) -> "EscrowClient":
        """The client for this run's service."""
        from escrowctl.client.client import EscrowClient

        return EscrowClient(
            self.service,
            self._open_wire(),
            open_journal=lambda: self.journal,
            surroundings=self.surroundings,
            signals=self.signals,
            invocation=self.invocation,
        )

    @cached_property
    def journal(self) -> "Journal":
        """The journal of this run: the sandbox's own, or the one for everything else.

        Raises EscrowctlError `journal_unusable` (17).
        """
        from escrowctl.journal.journal import Journal

        state = self.folders.state
        folder = state / "sandbox" if self.options.sandbox else state
        return Journal(folder, now=self.surroundings.now, invocation=self.invocation)

    def close(self) -> None:
        """Close what was opened."""
        for name in ("client", "journal", "_sandbox"):
            if name in self.__dict__:
                self.__dict__[name].close()

    # Asking

    def confirm(self, lines: list[str], word: str, *, why: str, declined: str) -> None:
        """Show what is to be done and have `word` typed.

        Raises EscrowctlError (exit 3): `declined`, or `confirmation_needed` where nobody is there.
        """
        self._require_somebody(why, "--yes")
        if self._ask(lines) != word:
            raise EscrowctlError(ErrorCode.DECLINED, f"declined; {declined}. {NOTHING_SENT}", sending=Sending.NOT_SENT)

    def _ask(self, lines: list[str]) -> str:
        answer = ""
        try:
            with self.signals.let_through():
                self.console.ask(lines)
                answer = self.surroundings.stdin.readline()
        finally:
            if not answer.endswith("\n"):
                # Ctrl-C and Ctrl-D leave the cursor behind the question.
                self.console.report("")
        return answer.strip()

    def _require_somebody(self, why: str, flag: str) -> None:
        around = self.surroundings
        absent = (
            "--no-input says not to ask"
            if self.options.no_input
            else "--json speaks to programs"
            if self.options.json
            else "CI is set"
            if around.environ.get("CI")
            else "nobody is at the terminal"
            if not (around.stdin.isatty() and around.stderr.isatty())
            else None
        )
        if absent:
            raise EscrowctlError(
                ErrorCode.CONFIRMATION_NEEDED,
                f"{why}, and {absent}. {NOTHING_SENT}",
                hint=f"to confirm it on the line: {flag}",
                sending=Sending.NOT_SENT,
            )

    # Inside

    @cached_property
    def _sandbox(self) -> "Sandbox":
        from escrowctl.sandbox.service import open_sandbox

        return open_sandbox(self.folders.state / "sandbox", now=self.surroundings.now)

    def _sandbox_service(self) -> "Service":
        from escrowctl.config.origin import Origin
        from escrowctl.config.secrets import Secret
        from escrowctl.config.service import READ_TIMEOUT, WRITE_TIMEOUT, Service
        from escrowctl.config.settings import check_timeout

        options = self.options
        for name, value in (("--profile", options.profile), ("--base-url", options.base_url)):
            if value is not None:
                raise bad_value(f"--sandbox and {name} cannot both be meant: --sandbox goes nowhere else.")
        timeout = options.timeout
        if timeout is not None:
            check_timeout(timeout, source="--timeout")
        return Service(
            name="sandbox",
            origin=Origin("http", SANDBOX_HOST, 80),
            identity=self._sandbox.identity,
            key=Secret(self._sandbox.key),
            url_source="--sandbox",
            key_source="the sandbox's own store",
            live=False,
            sandbox=True,
            released=frozenset({"released"}),
            read_timeout=timeout or READ_TIMEOUT,
            write_timeout=timeout or WRITE_TIMEOUT,
        )

    def _open_wire(self) -> "Wire":
        from escrowctl.client.transport import open_in_process_wire, open_wire

        if self.service.sandbox:
            return open_in_process_wire(self._sandbox.app, observe=self._observer)
        return open_wire(self.service, monotonic=self.surroundings.monotonic, observe=self._observer)

    @property
    def _observer(self) -> "Observer | None":
        from escrowctl.client.trace import Trace

        options = self.options
        if not (options.verbose or options.debug):
            return None
        return Trace(self.console.trace, whole=options.debug, secret=self.service.key).observe

    def _with_ways_on(self, error: EscrowctlError) -> EscrowctlError:
        """Name both ways on where nothing is configured: an account, or the sandbox."""
        if error.code is ErrorCode.NOT_CONFIGURED:
            error.hint = (
                "with an account:     set ESCROWCTL_BASE_URL and ESCROWCTL_API_KEY (see: escrowctl help environment)",
                f"without an account:  escrowctl --sandbox {self.typed}".rstrip(),
            )
        return error


if TYPE_CHECKING:
    from escrowctl.client.transport import Observer
