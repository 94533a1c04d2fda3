"""`escrowctl webhook listen`: receive events on this machine, and forward them to a web application."""

import contextlib
import os
import shlex
from collections import Counter
from datetime import timedelta
from typing import Annotated
from urllib.parse import urlsplit

import typer

from escrowctl.commands.webhook.endpoints import check_url, find_or_register_endpoint
from escrowctl.commands.webhook.lines import view_attempt, view_event
from escrowctl.commands.webhook.sender import EventSource, SecretFileOption, UnverifiedOption
from escrowctl.contract.json import JsonValue, Number, encode
from escrowctl.errors import ErrorCode, EscrowctlError, ExitCode, Hint, command, not_sent
from escrowctl.journal.sqlite.locks import LockFile
from escrowctl.options import PortOption, ReadyFileOption, YesOption
from escrowctl.output.view import View
from escrowctl.ready_file import ready_file_written, refuse_unrelated_file
from escrowctl.runtime import timestamp
from escrowctl.session import Session, session_of
from escrowctl.webhooks.forward import Forwarder, read_target
from escrowctl.webhooks.receiver import Arrival, Receiver
from escrowctl.webhooks.spool import ForwardState, Spool, open_spool

_EVENT_RETENTION = timedelta(days=30)
"""How long an event stays stored after it needs no more forwarding."""
_STOP_SECONDS = 2.0
"""How long to wait at the end for an attempt in progress."""


def listen(
    context: typer.Context,
    port: PortOption = 4600,
    forward_to: Annotated[
        str | None, typer.Option("--forward-to", metavar="URL", help="Your application's URL on this machine.")
    ] = None,
    unverified: UnverifiedOption = False,
    register: Annotated[bool, typer.Option("--register", help="Register an endpoint for this listener.")] = False,
    url: Annotated[str | None, typer.Option(metavar="URL", help="The public URL that forwards to this port.")] = None,
    yes: YesOption = False,
    secret_file: SecretFileOption = None,
    print_secret: Annotated[bool, typer.Option("--print-secret", help="Print the signing secret, and exit.")] = False,
    ready_file: ReadyFileOption = None,
) -> None:
    """Receive events until Ctrl-C: store, show and forward them.

    An event is stored before the service gets a 200. For details: escrowctl help webhooks

    \b
    Examples:
      escrowctl --sandbox webhook listen --register
      escrowctl webhook listen --forward-to http://127.0.0.1:3000/hooks
    """
    from escrowctl.loopback import LoopbackServer  # noqa: PLC0415 - help does not need it

    session = session_of(context)
    target = read_target(forward_to) if forward_to is not None else None
    if url is not None:
        check_url(url)
    if ready_file is not None:
        refuse_unrelated_file(ready_file.absolute())
    source = EventSource(session, secret_file)
    if print_secret:
        for text in dict.fromkeys(source.require_secrets()):
            session.console.write_page(text)
        return
    with session.signals.held(), contextlib.ExitStack() as cleanup:
        # Check the scheme before registering an endpoint.
        source.make_verifier([])
        spool = cleanup.enter_context(open_spool(source.spool_path, source.identity))
        # The server has its port now, but does not answer yet. It also accepts the host name of the public URL.
        host = urlsplit(url).hostname if url is not None else None
        server = LoopbackServer(port, hosts=frozenset({host} if host else ()))
        cleanup.callback(server.close)
        endpoint = find_or_register_endpoint(session, server.base_url, url, yes=yes) if register else None
        # Free the sandbox for other commands, and for `sandbox serve`.
        session.connector.close()
        if count := spool.remove_old(timestamp(session.runtime.now() - _EVENT_RETENTION)):
            removed = f"stored events older than {_EVENT_RETENTION.days} days: {count}"
            session.console.note("removed", removed, label="removed")
        verifier = source.make_verifier(source.find_secrets())
        receiver = Receiver(spool, verifier, now=session.runtime.now, target=target, forwards_unverified=unverified)
        forwarder = None
        if target:
            locks = LockFile(source.spool_path.with_suffix(".lock"))
            cleanup.callback(locks.close)
            if not locks.hold(f"{source.identity}\n{target}"):
                raise not_sent(ErrorCode.BUSY, f"another webhook listen already forwards to {target}.")
            forwarder = Forwarder(source.spool_path, source.identity, target, runtime=session.runtime)
        if ready_file is not None:
            ready: JsonValue = {"url": server.base_url, "pid": Number(str(os.getpid()))}
            cleanup.enter_context(ready_file_written(ready_file.absolute(), encode(ready) + "\n"))
        _announce(session, server.base_url, url, endpoint, can_verify=verifier.can_verify)
        run = _ListenRun(session, receiver, spool, forwarder, profile=source.profile)
        if forwarder is not None:
            cleanup.callback(forwarder.stop, seconds=_STOP_SECONDS)
            forwarder.start()
        server.run(receiver, run.show_new_events, commit_group=receiver.group, report=receiver.record_refusal)
        code = run.finish()
    raise typer.Exit(code)


def _announce(session: Session, local_url: str, url: str | None, endpoint: View | None, *, can_verify: bool) -> None:
    console = session.console
    if endpoint is not None and (status := endpoint.named["status"] or "enabled") not in ("enabled", "active"):
        console.warn("endpoint", f"the service reports endpoint {endpoint.id} as {status}: it may send no events")
    at = f", endpoint {endpoint.id}" if endpoint is not None and endpoint.id else ""
    console.note("listening", f"{local_url}{at}; press Ctrl-C to stop", label="listening")
    if url is not None:
        console.note("public_url", f"{url} must forward to {local_url}", label="listening")
    if can_verify:
        hint = command("webhook listen --print-secret", "to print the secret for your application")
        console.note("secret", "signatures are checked", hints=(hint,))
    else:
        console.warn("unverified", "no signing secret or scheme is known: every event will be UNVERIFIED")


class _ListenRun:
    """Shows and counts the received events, and the attempts to forward events, until a signal."""

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
            session.console.note("forwarding", f"to {target}, body and headers unchanged", label="forwarding")
            if waiting := spool.count_waiting(str(target)):
                message = f"events from earlier runs, which are sent first: {waiting}"
                session.console.note("waiting", message, label="waiting")

    def show_new_events(self) -> bool:
        """Show new events and attempts. Return whether a signal came. Raises the error that ended forwarding."""
        arrived = self._receiver.take_arrivals()
        for arrival in arrived:
            self._show_arrival(arrival)
        names = [arrival.event.name for arrival in reversed(arrived) if arrival.event is not None]
        if names and self._session.options.base_url is None:
            self._session.completion_cache.add_events(names, self._profile)
        for attempt in self._forwarder.take_attempts() if self._forwarder is not None else ():
            self._counts["forwarded"] += attempt.state is ForwardState.DONE
            self._counts["given up"] += attempt.state is ForwardState.FAILED
            self._session.console.show_line(view_attempt(attempt, at=self._now()))
        return self._session.signals.pending is not None

    def finish(self) -> ExitCode:
        """Stop forwarding, report counts, return the exit code. Raises `NOT_FORWARDED` if events remain."""
        target = self._forwarder.target if self._forwarder is not None else None
        if self._forwarder is not None:
            self._forwarder.stop(seconds=_STOP_SECONDS)
        self.show_new_events()
        code = self._session.signals.take_pending() or ErrorCode.INTERRUPTED
        counts = self._counts
        counts["waiting"] = self._spool.count_waiting(str(target)) if target is not None else 0
        others = ("refused", "forwarded", "not forwarded", "repeated", "given up", "waiting")
        message = "".join(f", {counts[word]} {word}" for word in others if counts[word])
        self._session.console.note("stopped", f"{counts['received']} received and stored{message}", label="stopped")
        if left := counts["waiting"] + counts["given up"]:
            events = "1 event" if left == 1 else f"{left} events"
            message = f"{target} has not accepted {events}."
            send = command(f"webhook replay --failed --forward-to {shlex.quote(str(target))}", "to send them now")
            wait = Hint("webhook listen with the same --forward-to sends the waiting events first")
            raise EscrowctlError(ErrorCode.NOT_FORWARDED, message, hint=(send, wait), facts={"left": left})
        return code.exit_code

    def _show_arrival(self, arrival: Arrival) -> None:
        event, result = arrival.event, ""
        if event is None:
            self._counts["refused"] += 1
            # The console shows equal messages only once. Because of the time, that is once a second.
            self._session.console.warn("refused", f"{arrival.refusal} at {self._now()[11:19]}Z: {arrival.reason}")
            return
        self._counts["received"] += 1
        if self._forwarder is not None and arrival.is_queued:
            self._forwarder.wake()
            return
        if event.arrivals > 1:
            # Whether it is forwarded was counted when it was received first.
            self._counts["repeated"] += 1
            result = f"received {event.arrivals} times"
        elif self._forwarder is not None:
            self._counts["not forwarded"] += 1
            result = "not forwarded"
        self._session.console.show_line(view_event(event, at=self._now(), result=result))

    def _now(self) -> str:
        return timestamp(self._session.runtime.now())
