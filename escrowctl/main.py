"""The entry point: run one command line, and turn every exception into output and an exit code.

At its top, this module imports only what `--version` needs, because scripts often call `escrowctl --version`.
"""

import os
import sys

from escrowctl import __version__

# Type checkers know this name. Importing it from typing would make --version much slower.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from escrowctl.errors import EscrowctlError
    from escrowctl.runtime import Runtime
    from escrowctl.session import Session

_VERSION_OPTIONS = frozenset({"--version", "-V"})
_ALLOWED_WITH_VERSION = frozenset({"--json", "--quiet", "-q", "--no-input", "--debug", "--verbose", "-v"})
_CRASH_LABEL = "crash report (no amounts, ids or keys)"


def main(argv: "Sequence[str] | None" = None, runtime: "Runtime | None" = None) -> int:
    """Run one command line (without the program's name) and return its exit code. Raises nothing."""
    words = list(sys.argv[1:] if argv is None else argv)
    asks_only_for_version = _VERSION_OPTIONS & {*words} and {*words} <= _VERSION_OPTIONS | _ALLOWED_WITH_VERSION
    if asks_only_for_version and _print_version(as_json="--json" in words):
        return 0
    try:
        return int(_run(words, runtime))
    except KeyboardInterrupt:
        # Ctrl-C came before the signal handlers were installed: nothing was sent.
        return 130


def _run(words: "Sequence[str]", runtime: "Runtime | None") -> int:
    import gc

    # Imported objects stay in use: searching them for garbage again and again takes 5 % of a start. No command imports
    # as many objects as this number, which start a search.
    gc.set_threshold(100_000)
    from escrowctl.errors import Stopped
    from escrowctl.runtime import Runtime, find_program_words
    from escrowctl.session import Session
    from escrowctl.signals import Signals

    session = Session(runtime or Runtime(program_words=find_program_words()), Signals())
    session.words = tuple(words)
    with session.signals.installed(until_exit=runtime is None):
        try:
            code = _dispatch(words, session)
            _deliver_events(session)
            return code
        except Stopped as stopped:
            # A second signal came while the first was being reported.
            return stopped.code.exit_code
        finally:
            session.signals.hold()
            session.close()
            session.console.close()
            if runtime is None:
                # The process ends now. A last search for garbage would take a tenth of a run.
                gc.freeze()


def _dispatch(words: "Sequence[str]", session: "Session") -> int:
    """Run the command and return the exit code. Report its exceptions."""
    from escrowctl.errors import ErrorCode, EscrowctlError, ExitCode, Hint, OutputClosedError, Stopped, command

    environ = session.runtime.environ
    try:
        if environ.get("ESCROWCTL_API_KEY") or environ.get("ESCROWCTL_API_KEY_FILE"):
            session.keys.learn_environment()
            session.keys.refuse_misplaced_keys()
        from escrowctl.app import run

        code = run(words, session)
        if session.options.version:
            session.console.write_data(_version_text(as_json="--json" in _words_before_dashes(words)))
        # Everything is done and reported: a later signal has nothing left to stop.
        session.signals.hold()
        _report_survived_defects(session)
    except EscrowctlError as error:
        if error.code in (ErrorCode.USAGE, ErrorCode.BAD_VALUE, ErrorCode.BAD_CONFIG):
            # The line may not have been parsed to its end: look for --json in its words.
            session.options.json |= "--json" in _words_before_dashes(words)
        return _report_error(session, error)
    except Stopped as stopped:
        # Without an opened journal there was no write: the sentence would only confuse.
        usual = "No write of this command has an unknown outcome." if session.may_have_written else ""
        message = f"stopped. {stopped.progress or usual}".rstrip()
        return _report_error(session, EscrowctlError(stopped.code, message, effect=stopped.effect))
    except OutputClosedError:
        # The command did its work. A reader of stdout, such as head, may close it early.
        return ExitCode.OK
    except Exception as error:
        report = _write_crash_report(session, error)
        message = f"internal error in escrowctl ({type(error).__name__})."
        report_hint = [Hint(str(report), _CRASH_LABEL)] if report else []
        hint = (command("journal list", "first check what was sent"), *report_hint)
        return _report_error(session, EscrowctlError(ErrorCode.DEFECT, message, hint=hint))
    return code


def _deliver_events(session: "Session") -> None:
    """Deliver the sandbox's events after the command. A failed delivery does not change the exit code."""
    try:
        if session.options.sandbox:
            session.connector.deliver_events()
    except Exception as error:
        session.defects.append(error)
        _report_survived_defects(session)


def _report_survived_defects(session: "Session") -> None:
    """Write a note and a crash report for each internal error that did not end the run."""
    for error in session.defects:
        report = _write_crash_report(session, error)
        message = f"escrowctl continued after an internal error ({type(error).__name__})"
        session.console.note("defect", message + (f"; {_CRASH_LABEL}: {report}" if report else ""), important=True)
    session.defects.clear()


def _write_crash_report(session: "Session", error: BaseException) -> "Path | None":
    """Write a crash report, and under `--debug` the traceback. Return its path, or None if it cannot be written."""
    import contextlib

    _report_traceback(session, error)
    with contextlib.suppress(Exception):
        from escrowctl.crash_report import write_crash_report

        return write_crash_report(session.folders.state, session.command, error, now=session.runtime.now())
    return None


def _report_traceback(session: "Session", error: BaseException) -> None:
    import contextlib
    import traceback

    if session.options.debug:
        with contextlib.suppress(Exception):
            session.learn_stored_keys()
        session.console.report("".join(traceback.format_exception(error)).rstrip())


def _report_error(session: "Session", error: "EscrowctlError") -> int:
    import contextlib

    from escrowctl.errors import ErrorCode

    # The exit code is decided: another signal must not change it.
    session.signals.hold()
    # The error may quote a stored key that was typed by mistake.
    with contextlib.suppress(Exception):
        session.learn_stored_keys()
    _report_survived_defects(session)
    if entry := error.facts.get("entry"):
        session.completion_cache.add_journal_names("entry", [str(entry)])
    if error.reason:
        from escrowctl.commands.advice import advise

        advise(error, session)
    if error.code is ErrorCode.RESULT_NOT_PRINTED:
        _report_traceback(session, error)
    session.console.error(error)
    return error.code.exit_code


def _print_version(*, as_json: bool) -> bool:
    """Print the version and return True. If printing fails, return False: `_run` then reports the failure."""
    if sys.stdout is None:
        # Closed before the program began.
        return False
    try:
        # Not through the stream's buffer, which would keep a text that cannot be written.
        os.write(sys.stdout.fileno(), f"{_version_text(as_json=as_json)}\n".encode())
    except OSError as error:
        return isinstance(error, BrokenPipeError)
    return True


def _version_text(*, as_json: bool) -> str:
    return f'{{"version": "{__version__}"}}' if as_json else f"escrowctl {__version__}"


def _words_before_dashes(words: "Sequence[str]") -> "Sequence[str]":
    return words[: words.index("--")] if "--" in words else words
