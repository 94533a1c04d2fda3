"""The entry point: argv in, exit code out, and the only exception boundary.

The top imports only modules that `--version` needs: scripts call it often.
"""

import os
import sys

from escrowctl import __version__

# Type checkers know the name; importing typing would cost --version half of its time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from escrowctl.runtime import Runtime
    from escrowctl.session import Session

_MANY_OBJECTS = 100_000
"""The number of new objects that starts a garbage collection: more than any command imports."""

_VERSION_OPTIONS = frozenset({"--version", "-V"})
_BESIDE_VERSION = frozenset({"--json", "--quiet", "-q", "--no-input", "--debug", "--verbose", "-v"})
_REPORT = "crash report (no amounts, ids or keys)"


def main(argv: "Sequence[str] | None" = None, runtime: "Runtime | None" = None) -> int:
    """Run one command line (without the program's name) and return its exit code. Raises nothing."""
    words = list(sys.argv[1:] if argv is None else argv)
    if _asks_version_only(words) and _print_version(as_json="--json" in words):
        return 0
    try:
        return int(_run(words, runtime))
    except KeyboardInterrupt:
        # It came before the handlers were installed: nothing was sent.
        return 130


def _run(words: "Sequence[str]", runtime: "Runtime | None") -> int:
    import gc

    # Imported objects stay: searching them for garbage again and again takes 5 % of a start.
    gc.set_threshold(_MANY_OBJECTS)
    from escrowctl.errors import Stopped
    from escrowctl.runtime import Runtime, read_call
    from escrowctl.session import Session
    from escrowctl.signals import Signals

    session = Session(runtime or Runtime(called=read_call()), Signals())
    session.words = tuple(words)
    with session.signals.installed(for_good=runtime is None):
        try:
            code = _dispatch(words, session)
            _deliver_events(session)
            return code
        except Stopped as stopped:
            # A second signal, while the first was being reported.
            return stopped.code.exit_code
        finally:
            session.signals.hold()
            session.close()
            session.console.close()
            if runtime is None:
                # The process ends now. One more search of all objects for garbage takes a tenth of a run.
                gc.freeze()


def _dispatch(words: "Sequence[str]", session: "Session") -> int:
    """Run the command. Turn its exceptions into output and an exit code."""
    from escrowctl.errors import ErrorCode, EscrowctlError, ExitCode, OutputClosedError, Stopped

    try:
        _look_at_keys(session)
        from escrowctl.app import run

        code = run(words, session)
        if session.options.version:
            session.console.data(_version_text(as_json="--json" in _before_dashes(words)))
        # All is done and reported: a later signal has nothing left to end.
        session.signals.hold()
        _note_defects(session)
    except EscrowctlError as error:
        if error.code in (ErrorCode.USAGE, ErrorCode.BAD_VALUE, ErrorCode.BAD_CONFIG):
            # The line may not have been parsed to its end: look for --json in its words.
            session.options.json |= "--json" in _before_dashes(words)
        return _fail(session, error)
    except Stopped as stopped:
        # If no write was possible, the sentence would only raise the question.
        usual = "No write of this command has an unknown outcome." if session.may_have_written else ""
        message = f"stopped. {stopped.standing or usual}".rstrip()
        return _fail(session, EscrowctlError(stopped.code, message, effect=stopped.effect))
    except OutputClosedError:
        # The command did its work; a reader of stdout may close it early.
        return ExitCode.OK
    except Exception as error:
        return _report_defect(session, error)
    return code


def _look_at_keys(session: "Session") -> None:
    """Refuse a line or a variable that holds the environment's key, before any other code reads them."""
    environ = session.runtime.environ
    if environ.get("ESCROWCTL_API_KEY") or environ.get("ESCROWCTL_API_KEY_FILE"):
        session.keys.learn_environment()
        session.keys.refuse_misplaced()


def _deliver_events(session: "Session") -> None:
    """Deliver the sandbox's events. The command is over: a failure here does not change its exit code."""
    try:
        if session.options.sandbox:
            session.connector.deliver_events()
    except Exception as error:
        session.defects.append(error)
        _note_defects(session)


def _report_defect(session: "Session", error: Exception) -> int:
    from escrowctl.errors import ErrorCode, EscrowctlError, Hint, command

    report = _record_defect(session, error)
    message = f"internal error in escrowctl ({type(error).__name__})."
    where = [Hint(str(report), _REPORT)] if report else []
    hint = (command("journal list", "first check what was sent"), *where)
    return _fail(session, EscrowctlError(ErrorCode.DEFECT, message, hint=hint))


def _note_defects(session: "Session") -> None:
    """Report the defects that did not end the run, each with its crash report."""
    for error in session.defects:
        report = _record_defect(session, error)
        message = f"escrowctl continued after an internal error ({type(error).__name__})"
        session.console.note("defect", message + (f"; {_REPORT}: {report}" if report else ""), important=True)
    session.defects.clear()


def _record_defect(session: "Session", error: BaseException) -> "Path | None":
    """Write a crash report and return its path; None if that fails. The caller reports the defect in any case."""
    import contextlib

    _report_traceback(session, error)
    with contextlib.suppress(Exception):
        from escrowctl.app import list_words
        from escrowctl.crash_report import write_crash_report

        runtime = session.runtime
        return write_crash_report(session.folders.state, session.words, error, known=list_words(), at=runtime.now())
    return None


def _report_traceback(session: "Session", error: BaseException) -> None:
    """Write a traceback under `--debug`."""
    import contextlib
    import traceback

    if session.options.debug:
        with contextlib.suppress(Exception):
            session.learn_stored_keys()
        session.console.report("".join(traceback.format_exception(error)).rstrip())


def _fail(session: "Session", error: "EscrowctlError") -> int:
    import contextlib

    from escrowctl.app import is_local
    from escrowctl.errors import Effect, ErrorCode

    # The outcome is decided; another signal cannot change it.
    session.signals.hold()
    # The mistake may be a typed key that no code has read yet.
    with contextlib.suppress(Exception):
        session.learn_stored_keys()
    _note_defects(session)
    if entry := error.facts.get("entry"):
        session.names.add_in_journal("entry", [str(entry)])
    if error.reason:
        from escrowctl.commands.advice import advise

        advise(error, session)
    if error.code is ErrorCode.RESULT_NOT_PRINTED:
        _report_traceback(session, error)
    if error.effect is Effect.NOTHING_SENT and is_local(session.command):
        # A command that never sends anything need not say so.
        error.effect = None
    session.console.error(error, session.invocation)
    return error.exit_code


def _asks_version_only(words: list[str]) -> bool:
    given = set(words)
    return bool(given & _VERSION_OPTIONS) and given <= _VERSION_OPTIONS | _BESIDE_VERSION


def _print_version(*, as_json: bool) -> bool:
    """Print the version and return True. If that fails, return False: `_run` then reports why."""
    if sys.stdout is None:
        # Closed before the program began.
        return False
    try:
        # Not through the buffer: a text that cannot be written would stay in it.
        os.write(sys.stdout.fileno(), f"{_version_text(as_json=as_json)}\n".encode())
    except BrokenPipeError:
        return True
    except OSError:
        return False
    return True


def _version_text(*, as_json: bool) -> str:
    return f'{{"version": "{__version__}"}}' if as_json else f"escrowctl {__version__}"


def _before_dashes(words: "Sequence[str]") -> "Sequence[str]":
    return words[: words.index("--")] if "--" in words else words


if TYPE_CHECKING:
    from escrowctl.errors import EscrowctlError
