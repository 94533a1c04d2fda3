"""`escrowctl webhook listen`: receive events on this machine, and forward them to a web application."""

import contextlib
import os
import shlex
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from escrowctl.commands.webhook.endpoints import check_url, find_endpoint, register_url
from escrowctl.commands.webhook.lines import view_attempt, view_event
from escrowctl.commands.webhook.sender import EventSource, SecretFileOption, UnverifiedOption
from escrowctl.contract.json import JsonValue, Number, encode
from escrowctl.errors import ErrorCode, EscrowctlError, ExitCode, Hint, bad_value, command, not_sent
from escrowctl.journal.sqlite.locks import LockFile
from escrowctl.options import PortOption, ReadyFileOption, YesOption
from escrowctl.post_once import Target
from escrowctl.ready_file import announced_in, refuse_other_file
from escrowctl.runtime import timestamp
from escrowctl.session import Session, session_of
from escrowctl.webhooks.forward import Forwarder, read_target
from escrowctl.webhooks.receiver import Arrival, Receiver
from escrowctl.webhooks.spool import ForwardState, Spool

if TYPE_CHECKING:
    from escrowctl.output.view import View

_READY_KEYS = frozenset({"url", "pid"})
_KEPT = timedelta(days=30)
"""How long to store an event that needs no more forwarding."""
_LAST_SECONDS = 2.0
"""How long to wait at the end for an attempt in progress."""


def listen(
    context: typer.Context,
    port: PortOption = 4600,
    forward_to: Annotated[
        str | None, typer.Option("--forward-to", metavar="URL", help="Your application, on this machine.")
    ] = None,
    unverified: UnverifiedOption = False,
    register: Annotated[bool, typer.Option("--register", help="Have the service send events here.")] = False,
    url: Annotated[str | None, typer.Option(metavar="URL", help="The public URL that leads here.")] = None,
    yes: YesOption = False,
    secret_file: SecretFileOption = None,
    print_secret: Annotated[bool, typer.Option("--print-secret", help="Print the signing secret, and end.")] = False,
    ready_file: ReadyFileOption = None,
) -> None:
    """Receive events, store, show and forward them, until Ctrl-C.

    An event is stored before the service gets a 200. To know more: escrowctl help webhooks

    \b
    Examples:
      escrowctl --sandbox webhook listen --register
      escrowctl webhook listen --forward-to http://127.0.0.1:3000/hooks
    """
    from escrowctl.loopback import LoopbackServer  # noqa: PLC0415 - for those who listen

    session = session_of(context)
    target = read_target(forward_to) if forward_to is not None else None
    if url is not None:
        check_url(url)
    if ready_file is not None:
        refuse_other_file(ready_file.absolute(), keys=_READY_KEYS)
    sender = EventSource(session, secret_file)
    if print_secret:
        for text in dict.fromkeys(secret.text for secret in sender.require_secrets()):
            session.console.page(text)
        return
    with session.signals.held(), contextlib.ExitStack() as ending:
        # Check the scheme before registering an endpoint.
        sender.verifier([])
        spool = ending.enter_context(sender.open_spool())
        # It has a port, and does not answer yet. It accepts calls for the host of the public URL too.
        host = urlsplit(url).hostname if url is not None else None
        server = LoopbackServer(port, hosts=frozenset({host} if host else ()))
        ending.callback(server.close)
        endpoint = _register(session, server.base_url, url, yes=yes) if register else None
        # Free the sandbox for other commands, and for `sandbox serve`.
        session.connector.close()
        if count := spool.remove_old(timestamp(session.runtime.now() - _KEPT)):
            what = f"{count} stored {'event' if count == 1 else 'events'}, older than {_KEPT.days} days"
            session.console.note("removed", what, word="removed")
        verifier = sender.verifier(sender.find_secrets())
        receiver = Receiver(spool, verifier, now=session.runtime.now, target=target, forwards_unverified=unverified)
        forwarder = _make_forwarder(session, sender, target, ending) if target else None
        if ready_file is not None:
            ready: JsonValue = {"url": server.base_url, "pid": Number(str(os.getpid()))}
            ending.enter_context(announced_in(ready_file.absolute(), encode(ready) + "\n"))
        _announce(session, server.base_url, url, endpoint, can_verify=verifier.can_verify)
        run = _Run(session, receiver, spool, forwarder, profile=sender.profile)
        if forwarder is not None:
            ending.callback(forwarder.stop, seconds=_LAST_SECONDS)
            forwarder.start()
        server.run(receiver, run.turn, group=receiver.group, report=receiver.refuse)
        code = run.end()
    raise typer.Exit(code)


def _announce(session: Session, here: str, url: str | None, endpoint: "View | None", *, can_verify: bool) -> None:
    console = session.console
    if endpoint is not None and (endpoint.named["status"] or "enabled") not in ("enabled", "active"):
        console.warn("endpoint", f"the service lists {endpoint.id} as {endpoint.named['status']}: it may send nothing")
    at = f", endpoint {endpoint.id}" if endpoint is not None and endpoint.id else ""
    console.note("listening", f"{here}{at}; Ctrl-C stops", word="listening")
    if url is not None:
        console.note("public_url", f"{url} must lead here", word="listening")
    if can_verify:
        hint = command("webhook listen --print-secret", "the secret, for your application")
        console.note("secret", "signatures are checked", hints=(hint,), invocation=session.invocation)
    else:
        console.warn("unverified", "no signing secret or scheme is known: every event will be UNVERIFIED")


class _Run:
    """Shows and counts received events and forwarding attempts."""

    def __init__(
        self, session: Session, receiver: Receiver, spool: Spool, forwarder: Forwarder | None, *, profile: str | None
    ) -> None:
        self._session = session
        self._receiver = receiver
        self._spool = spool
        self._forwarder = forwarder
        self._profile = profile
        self._counts: Counter[str] = Counter()
        if forwarder is not None:
            target = forwarder.target
            session.console.note("forwarding", f"{target}, bytes and headers as received", word="forwarding")
            if waiting := spool.count(str(target), ForwardState.WAITING):
                session.console.note("waiting", f"{waiting} from earlier, sent first", word="waiting")

    def turn(self) -> bool:
        """Show new arrivals and attempts. Return whether a signal has come. Raises the error that ended forwarding."""
        arrived = self._receiver.take()
        for arrival in arrived:
            self._show_arrival(arrival)
        names = [arrival.event.name for arrival in reversed(arrived) if arrival.event is not None]
        if names and self._session.options.base_url is None:
            self._session.names.add_events(names, self._profile)
        for attempt in self._forwarder.take() if self._forwarder is not None else ():
            self._counts["forwarded"] += attempt.state is ForwardState.DONE
            self._counts["given up"] += attempt.state is ForwardState.FAILED
            self._session.console.show_line(view_attempt(attempt, at=self._now()))
        return self._session.signals.pending is not None

    def end(self) -> ExitCode:
        """Stop forwarding, report the counts, and return the signal's exit code.

        Raises EscrowctlError `ErrorCode.NOT_FORWARDED` if the application has not accepted some events.
        """
        target = self._forwarder.target if self._forwarder is not None else None
        if self._forwarder is not None:
            self._forwarder.stop(seconds=_LAST_SECONDS)
        self.turn()
        code = self._session.signals.take() or ErrorCode.INTERRUPTED
        counts = self._counts
        counts["waiting"] = self._spool.count(str(target), ForwardState.WAITING) if target is not None else 0
        others = ("refused", "forwarded", "not forwarded", "repeated", "given up", "waiting")
        message = "".join(f", {counts[word]} {word}" for word in others if counts[word])
        self._session.console.note("stopped", f"{counts['received']} received and stored{message}", word="stopped")
        if left := counts["waiting"] + counts["given up"]:
            raise EscrowctlError(
                ErrorCode.NOT_FORWARDED,
                f"{target} has not accepted {left} {'event' if left == 1 else 'events'}.",
                hint=(
                    command(f"webhook replay --failed --forward-to {shlex.quote(str(target))}", "to send them now"),
                    Hint("webhook listen with the same --forward-to begins with those that wait"),
                ),
                facts={"left": left},
            )
        return code.exit_code

    def _show_arrival(self, arrival: Arrival) -> None:
        event, result = arrival.event, ""
        if event is None:
            self._counts["refused"] += 1
            # The console shows the same message once: with the time, that is once a second.
            message = f"{arrival.refusal} at {self._now()[11:19]}Z: {arrival.reason}"
            self._session.console.warn("refused", message)
            return
        self._counts["received"] += 1
        if self._forwarder is not None and arrival.queued:
            self._forwarder.wake()
            return
        if event.arrivals > 1:
            # Its outcome was counted when it was received first.
            self._counts["repeated"] += 1
            result = f"received {event.arrivals} times"
        elif self._forwarder is not None:
            self._counts["not forwarded"] += 1
            result = "not forwarded"
        self._session.console.show_line(view_event(event, at=self._now(), result=result))

    def _now(self) -> str:
        return timestamp(self._session.runtime.now())


def _register(session: Session, here: str, url: str | None, *, yes: bool) -> "View":
    """Return the endpoint with this URL, registered if there is none. Ask before that, except in the sandbox."""
    service = session.service
    if url is None and not (service.sandbox or service.origin.is_loopback):
        raise bad_value(f"--register needs --url: {service.origin} cannot reach {here}.")
    url = url or f"{here}/"
    if (found := find_endpoint(session, url)) is not None:
        session.console.note("endpoint_exists", f"{found.id} has the URL {url} already, and is used again")
        return found
    if not (service.sandbox or yes):
        session.prompt.confirm(
            [
                "GET /webhooks lists no endpoint with this URL:",
                f"  {url}",
                "Once registered it cannot be removed: the interface has no call for it.",
                "To register it, type yes:",
            ],
            "yes",
            why="webhook listen --register needs confirmation",
            declined="nothing was registered",
            hint="without --register, webhook listen shows what arrives from elsewhere",
        )
    return register_url(session, url)


def _make_forwarder(session: Session, sender: EventSource, target: Target, ending: contextlib.ExitStack) -> Forwarder:
    """Return the forwarder to start. Raises `ErrorCode.BUSY` if another process forwards to the same target."""
    locks = LockFile(sender.spool_path.with_suffix(".lock"))
    ending.callback(locks.close)
    if not locks.hold(f"{sender.identity}\n{target}"):
        raise not_sent(ErrorCode.BUSY, f"another webhook listen forwards to {target} already.")
    return Forwarder(sender.spool_path, sender.identity, target, runtime=session.runtime)
