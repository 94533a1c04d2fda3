"""The session of one run: its options, service, connection, journal, console and prompt.

A part is imported and opened when a command first uses it.
"""

import shlex
from contextlib import ExitStack, closing, suppress
from functools import cached_property
from typing import TYPE_CHECKING

from escrowctl.errors import ErrorCode, EscrowctlError, Hint, Invocation, command, printing_result
from escrowctl.options import SharedOptions
from escrowctl.output.console import Console
from escrowctl.runtime import Runtime
from escrowctl.signals import Signals

if TYPE_CHECKING:
    from collections.abc import Mapping

    import typer

    from escrowctl.client.reader import Reader
    from escrowctl.completion.cache import CompletionCache
    from escrowctl.config.folders import Folders
    from escrowctl.config.keys import KnownKeys
    from escrowctl.config.service import Service
    from escrowctl.config.settings import ServiceResolver
    from escrowctl.connector import Connector
    from escrowctl.contract.json import JsonValue
    from escrowctl.journal.journal import Journal
    from escrowctl.journals import Journals
    from escrowctl.output.view import View
    from escrowctl.prompt import Prompt
    from escrowctl.writes.pipeline import Pipeline
    from escrowctl.writes.writer import Writer


def session_of(context: "typer.Context") -> "Session":
    """Return the session that `main` passed to the command tree."""
    session = context.find_object(Session)
    assert session is not None, "main always passes one"
    return session


class Session:
    """The parts of one run of the program, each created when it is first used."""

    def __init__(self, runtime: Runtime, signals: Signals) -> None:
        self.runtime = runtime
        self.signals = signals
        self.options = SharedOptions()
        self.words: tuple[str, ...] = ()
        """The words of the command line after the program's name."""
        self.command = ""
        """The command as far as it was recognised, such as `escrowctl config set`."""
        self.defects: list[BaseException] = []
        """Defects of escrowctl that did not end the run, for main to report."""
        self.may_have_written = False
        """Whether the journal was opened for writing."""
        self._known_keys: KnownKeys | None = None
        self._opened = ExitStack()

    @cached_property
    def console(self) -> Console:
        """The console, with the options of this run."""
        runtime = self.runtime
        return Console(
            *(runtime.stdout, runtime.stderr, runtime.environ, self.options),
            now=runtime.now,
            find_invocation=lambda: self.invocation,
            # If no key is known yet, this imports nothing.
            star=lambda value: self._known_keys.star(value) if self._known_keys is not None else value,
        )

    @cached_property
    def prompt(self) -> "Prompt":
        """The prompt, which asks questions at the terminal."""
        from escrowctl.prompt import Prompt

        return Prompt(self.runtime, self.signals, self.options, self.console)

    def show(self, view: "View", *, done: str | None = None, facts: "Mapping[str, object] | None" = None) -> None:
        """Show one view. If the view is the result of a write, `done` says which write was done.

        Raises EscrowctlError: `RESULT_NOT_PRINTED` with `facts`, if the result of a write cannot be printed;
        `BAD_VALUE` under `-q` if the reply to a read contains no known id.
        """
        prints_ids = self.options.quiet and not self.options.fields
        if done is None and view.is_free_form and prints_ids and view.items != () and not view.ids:
            message = "-q prints ids, but no field of this reply is known to be an id: leave -q out."
            raise EscrowctlError(ErrorCode.BAD_VALUE, message)
        with printing_result(done, facts):
            self.console.show(view)

    @property
    def keys(self) -> "KnownKeys":
        """The known API keys. They are starred in everything that is written to stderr."""
        if self._known_keys is None:
            from escrowctl.config.keys import KnownKeys

            self._known_keys = KnownKeys(self.words, self.runtime.environ)
        return self._known_keys

    def learn_stored_keys(self) -> None:
        """Remember every stored key, so that a later message cannot quote one."""
        from escrowctl.config.file import CONFIG_NAME

        keys = self.keys
        if self.options.sandbox:
            return
        with suppress(EscrowctlError):
            # --config may have got a key in place of a file name: read the default file too.
            for config in {self.folders.config / CONFIG_NAME, self.resolver.config_path}:
                keys.learn_files(config, self.resolver.credentials.path)

    @cached_property
    def completion_cache(self) -> "CompletionCache":
        """The cache of the names that shells offer at TAB."""
        from escrowctl.completion.cache import CompletionCache

        return CompletionCache(lambda: self.folders.cache, sandbox=self.options.sandbox)

    def remember_ids(self, kind: str, statuses: "Mapping[str | None, JsonValue]") -> None:
        """Store ids of a kind (`transaction`, `user`) for shells to offer. `statuses` maps id to status."""
        if self.options.base_url is None:
            self.completion_cache.add_ids(kind, statuses, self.service)

    def remember_profiles(self, *, default: str | None = None) -> None:
        """Store the names of the profiles and the default one for shells to offer. Not under `--config`."""
        with suppress(EscrowctlError):
            if (config := self.resolver.config) is not None and self.options.config is None:
                self.completion_cache.set_profiles(config.profiles, default or config.default_profile)

    @property
    def invocation(self) -> Invocation:
        """The program as it was called, with the options and variables that select this journal and service."""
        options, environ = self.options, self.runtime.environ
        program = shlex.join([*self.runtime.program, *_list_given_options(("--config", options.config))])
        service_options = ["--sandbox"] if options.sandbox else []
        service_options += _list_given_options(("-p", options.profile), ("--base-url", options.base_url))
        # These variables may be set for this command only. Without them, the pasted command would use another journal.
        selecting = _format_assignments(environ, "ESCROWCTL_HOME", "ESCROWCTL_CONFIG", "ESCROWCTL_JOURNAL")
        program = f"{selecting} {program}".strip()
        names: tuple[str, ...] = ()
        if not service_options:
            names = ("ESCROWCTL_PROFILE", "ESCROWCTL_BASE_URL", "ESCROWCTL_API_KEY_FILE")
        # In the shell of a person who reads a CI job's log, the job's variables are not set.
        is_job = environ.get("CI") and not options.sandbox
        if is_job:
            names += ("ESCROWCTL_JOURNAL_ID", "ESCROWCTL_API_KEY_FILE", "ESCROWCTL_STATUS_RELEASED")
        variables = _format_assignments(environ, *dict.fromkeys(names))
        if is_job and not service_options and environ.get("ESCROWCTL_API_KEY"):
            variables += " ESCROWCTL_API_KEY_FILE=FILE"
        return Invocation(program, shlex.join(service_options), variables)

    @cached_property
    def folders(self) -> "Folders":
        """The config, state and cache folders of this run; each is looked up at its first use."""
        from escrowctl.config.folders import Folders

        return Folders(self.runtime.environ)

    @cached_property
    def resolver(self) -> "ServiceResolver":
        """Finds settings and their sources. Not for the sandbox, whose settings are fixed."""
        from escrowctl.config.settings import ServiceOptions, ServiceResolver

        options = self.options
        selecting = ServiceOptions(options.profile, options.base_url, options.config, options.timeout)
        return ServiceResolver(selecting, self.runtime.environ, self.folders)

    @cached_property
    def connector(self) -> "Connector":
        """Opens connections to services and to the sandbox."""
        from escrowctl.connector import Connector

        opened = Connector(self.runtime, self.signals, self.options, self.console, lambda: self.journals.sandbox_folder)
        return self._opened.enter_context(closing(opened))

    @cached_property
    def service(self) -> "Service":
        """The service of this run. If the service is live or the sandbox, a note says so once.

        Raises `NOT_CONFIGURED`, `KEY_MISSING`; `BAD_VALUE`, `BAD_CONFIG` for bad or conflicting values.
        """
        if self.options.sandbox:
            service = self.connector.find_sandbox()
            self.console.note("sandbox", "built in, no real money", label="sandbox")
            return service
        try:
            choice = self.resolver.choose()
            service = self.resolver.build_service(choice, self.resolver.find_key(choice))
        except EscrowctlError as error:
            if error.code is ErrorCode.NOT_CONFIGURED:
                in_sandbox = shlex.join([*self.runtime.program, "--sandbox", *self.words])
                error.hints = (
                    command("auth login", "with an account", bare=True),
                    Hint(in_sandbox, "without an account"),
                )
            raise
        self.keys.protect(service.key)
        service.refuse_key_in_names()
        self.remember_profiles()
        if service.live:
            self.console.note("live", f"{service.name}, {service.origin}", label="live", important=True)
        return service

    @cached_property
    def reader(self) -> "Reader":
        """The reader for this run's service."""
        return self._opened.enter_context(self.connector.open_reader(self.service))

    @cached_property
    def writer(self) -> "Writer":
        """Sends this run's writes and records them in the journal. The first access opens the journal."""
        from escrowctl.writes.writer import Writer

        self.journals.guard_live_writes(self.service)
        return Writer(self.reader, self.journal, report_defect=self.defects.append)

    @cached_property
    def pipeline(self) -> "Pipeline":
        """Carries out all steps of writes at this run's service."""
        # First the reader: it imports httpx. Deeper in the call stack, this would map and unmap a page 400 times.
        _ = self.reader
        from escrowctl.writes.pipeline import Pipeline

        return Pipeline(self.writer)

    @cached_property
    def journals(self) -> "Journals":
        """Opens journals, and checks that live writes may use one."""
        from escrowctl.journals import Journals

        return Journals(self.runtime, self.folders, self.resolver, self.console, sandbox=self.options.sandbox)

    @cached_property
    def journal(self) -> "Journal":
        """The run's journal, created if needed. Raises `JOURNAL_UNUSABLE`, also if settings require another one."""
        self.may_have_written = True
        return self._opened.enter_context(closing(self.journals.open(reading=False)))

    @cached_property
    def journal_to_read(self) -> "Journal":
        """The journal of this run for reading only: nothing is created, and the disk may be read-only."""
        return self._opened.enter_context(closing(self.journals.open(reading=True)))

    def close(self) -> None:
        """Close the connection, the journals and the sandbox."""
        self._opened.close()


def _list_given_options(*options: tuple[str, str | None]) -> list[str]:
    return [word for name, value in options if value is not None for word in (name, value)]


def _format_assignments(environ: "Mapping[str, str]", *names: str) -> str:
    return " ".join(f"{name}={shlex.quote(value)}" for name in names if (value := environ.get(name)))
