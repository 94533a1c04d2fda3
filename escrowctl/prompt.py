"""Questions to the operator at the terminal, or the reason why no question can be asked."""

from contextlib import nullcontext

from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Stopped, not_sent
from escrowctl.options import SharedOptions
from escrowctl.output.console import Console
from escrowctl.runtime import Runtime, discard_typed_input, without_echo
from escrowctl.signals import Signals

_MAX_ANSWER_CHARS = 8192
_MAX_QUOTED_CHARS = 80


def confirmation_needed(why: str, *, hint: str = "") -> EscrowctlError:
    """Return a `CONFIRMATION_NEEDED` error with the message `why`. A hint to use `--yes` precedes `hint`."""
    confirm = "to confirm without a question: repeat the command with --yes"
    return not_sent(ErrorCode.CONFIRMATION_NEEDED, f"{why}.", hint=(confirm, hint))


class Prompt:
    """Asks questions on stderr and reads the answers from stdin."""

    def __init__(self, runtime: Runtime, signals: Signals, options: SharedOptions, console: Console) -> None:
        self._runtime = runtime
        self._signals = signals
        self._options = options
        self._console = console

    @property
    def obstacle(self) -> str | None:
        """The reason why no question can be asked, in words that follow "but"; None if there is no obstacle."""
        runtime = self._runtime
        if self._options.no_input:
            return "--no-input is set"
        if self._options.json:
            return "--json is set"
        if runtime.environ.get("CI"):
            return "the variable CI is set"
        return None if runtime.stdin.isatty() and runtime.stderr.isatty() else "there is no terminal"

    def confirm(self, lines: list[str], word: str, *, why: str, declined: str, hint: str = "") -> None:
        """Show `lines`, which describe the write, and ask the operator to type `word`.

        Raises EscrowctlError with `hint`: `DECLINED` with the message `declined` if the answer is not `word`;
        `CONFIRMATION_NEEDED` with the message `why` if no question can be asked.
        """
        if obstacle := self.obstacle:
            raise confirmation_needed(f"{why}, but {obstacle}", hint=hint)
        # Text typed before the question is no answer to it.
        discard_typed_input(self._runtime.stdin)
        try:
            answer = self._ask(lines).strip()
        except Stopped as stopped:
            raise Stopped(stopped.code, f"{declined}.", Effect.NOTHING_SENT) from None
        if answer != word:
            typed = f'you typed "{answer[:_MAX_QUOTED_CHARS]}" instead of "{word}"'
            raise not_sent(ErrorCode.DECLINED, f"{typed if answer else 'you did not confirm'}: {declined}.", hint=hint)

    def ask(self, *lines: str) -> str:
        """Show `lines` and return the stripped answer. `obstacle` must be None. Raises `DECLINED` if input ends."""
        return _require_answer(self._ask(list(lines))).strip()

    def ask_secret(self, *lines: str) -> str:
        """Return an answer typed without echo. Raises `DECLINED` if input ends, `BAD_VALUE` if echo stays on."""
        return _require_answer(self._ask(list(lines), echo=False))

    def _ask(self, lines: list[str], *, echo: bool = True) -> str:
        stdin, answer = self._runtime.stdin, ""
        try:
            with self._signals.let_through(), nullcontext() if echo else without_echo(stdin):
                self._console.write_question(lines)
                answer = stdin.readline(_MAX_ANSWER_CHARS)
        finally:
            if not (echo and answer.endswith("\n")):
                # Ctrl-C, Ctrl-D and an answer without echo leave the cursor behind the question.
                self._console.report("")
        return answer


def _require_answer(answer: str) -> str:
    if not answer:
        raise not_sent(ErrorCode.DECLINED, "standard input ended without an answer.")
    return answer
