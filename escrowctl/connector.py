"""Opens connections to services, and to the sandbox in this process or in the process of `sandbox serve`."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from escrowctl.config.service import Service, make_sandbox_service
from escrowctl.config.settings import check_timeout
from escrowctl.errors import bad_value
from escrowctl.options import SharedOptions
from escrowctl.output.console import Console
from escrowctl.runtime import DrawWait, Runtime
from escrowctl.signals import Signals

if TYPE_CHECKING:
    from escrowctl.client.connection import Connection
    from escrowctl.client.http import Exchange, Request
    from escrowctl.client.reader import Reader
    from escrowctl.client.retry import Retry
    from escrowctl.client.trace import Trace
    from escrowctl.sandbox.ownership import ServedSandbox
    from escrowctl.sandbox.service import Sandbox


class Connector:
    """Opens connections and readers. Under `-v` and `--debug` each request is shown with its reply.

    `find_sandbox_folder` returns the folder of the sandbox's store, or raises EscrowctlError.
    """

    def __init__(
        self,
        runtime: Runtime,
        signals: Signals,
        options: SharedOptions,
        console: Console,
        find_sandbox_folder: Callable[[], Path],
    ) -> None:
        self._runtime = runtime
        self._signals = signals
        self._options = options
        self._console = console
        self._find_sandbox_folder = find_sandbox_folder
        self._served: ServedSandbox | None = None
        self._sandbox: Sandbox | None = None

    def find_sandbox(self) -> Service:
        """Return the sandbox as a service. If `sandbox serve` does not run, open the sandbox in this process.

        Raises EscrowctlError: `BAD_VALUE` if the options select a real service; `STATE_UNUSABLE` or `BUSY` if
        the sandbox's store cannot be opened.
        """
        options = self._options
        for name, value in (("--profile", options.profile), ("--base-url", options.base_url)):
            if value is not None:
                raise bad_value(f"--sandbox and {name} contradict each other: leave one out.")
        check_timeout(options.timeout)
        sandbox = self._find_or_open_sandbox()
        served_at = self._served.base_url if self._served else None
        return make_sandbox_service(options.timeout, identity=sandbox.identity, key=sandbox.key, served_at=served_at)

    def is_in_process(self, service: Service) -> bool:
        """Whether the service is the sandbox, and the sandbox runs in this process."""
        return service.sandbox and self._find_or_open_sandbox() is self._sandbox

    def make_opener(self, service: Service, draw_wait: DrawWait | None = None) -> "Callable[[], Connection]":
        """Return a function that opens a connection for one thread. Several threads may not share `draw_wait`."""
        from escrowctl.client.connection import Connection, InProcessTransport, connect
        from escrowctl.client.transport import make_tls_context

        is_observed = draw_wait is not None or self._options.verbose or self._options.debug
        observe = self._observe_exchange if is_observed else None
        if self.is_in_process(service) and self._sandbox is not None:
            app = self._sandbox.app
            return lambda: Connection(InProcessTransport(app), service.key, observe)
        context = make_tls_context(service.network.ca_bundle) if service.origin.scheme == "https" else None
        monotonic = self._runtime.monotonic
        return partial(connect, service, context, monotonic=monotonic, observe=observe, draw_wait=draw_wait)

    @contextmanager
    def open_reader(self, service: Service) -> "Iterator[Reader]":
        """Yield a reader of `service`. Its connection is closed after the block."""
        from escrowctl.client.reader import Reader

        with closing(self.make_opener(service, self._console.draw_wait)()) as connection:
            yield Reader(service, connection, self.retry, self._runtime, self._signals)

    @cached_property
    def retry(self) -> "Retry":
        """The retry rules, and the one retry budget that all requests of the run share."""
        from escrowctl.client.retry import Retry

        return Retry(self._runtime, self._signals, partial(self._console.note, "waiting"))

    def deliver_events(self) -> None:
        """Deliver the sandbox's events, if the sandbox runs in this process. Takes a few seconds at most."""
        if self._sandbox is not None:
            self._sandbox.sender.deliver()

    def close(self) -> None:
        """Close the sandbox, so that other processes can use it. The next use opens the sandbox again."""
        if self._sandbox is not None:
            self._sandbox.close()
        self._sandbox = self._served = None

    def _find_or_open_sandbox(self) -> "Sandbox | ServedSandbox":
        if (found := self._sandbox or self._served) is not None:
            return found
        from escrowctl.sandbox.ownership import find_server
        from escrowctl.sandbox.service import open_sandbox

        folder = self._find_sandbox_folder()
        self._served = find_server(folder)
        if self._served is None:
            self._sandbox = open_sandbox(folder, now=self._runtime.now)
            return self._sandbox
        return self._served

    def _observe_exchange(self, request: "Request", exchange: "Exchange", seconds: float) -> None:
        self._console.erase()
        if self._options.verbose or self._options.debug:
            self._trace.show(request, exchange, seconds)

    @cached_property
    def _trace(self) -> "Trace":
        from escrowctl.client.trace import Trace

        return Trace(self._console.trace, with_bodies=self._options.debug, now=self._runtime.now)
