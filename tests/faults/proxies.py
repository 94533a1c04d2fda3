"""Real proxies that send a write twice, and the service behind them: the first one is applied, and its answer is lost.

nginx does so with `proxy_next_upstream non_idempotent`, HAProxy with `retry-on all-retryable-errors`.
"""

import contextlib
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from wire_server import Seen, WireServer, hang_up, http_reply, keep_port

_NGINX = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream service {{ server 127.0.0.1:{first} max_fails=0; server 127.0.0.1:{second} max_fails=0; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://service;
      proxy_next_upstream error timeout non_idempotent;
      proxy_next_upstream_tries 2;
    }}
  }}
}}
"""

_HAPROXY = """
defaults
  mode http
  option http-buffer-request
  option redispatch 1
  retries 1
  retry-on all-retryable-errors
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend front
  bind 127.0.0.1:{port}
  default_backend back
backend back
  server first 127.0.0.1:{first}
  server second 127.0.0.1:{second}
"""

PROXIES: dict[str, tuple[str, Callable[[Path], list[str]]]] = {
    "nginx": (_NGINX, lambda config: ["nginx", "-p", str(config.parent), "-c", str(config)]),
    "haproxy": (_HAPROXY, lambda config: ["haproxy", "-db", "-f", str(config)]),
}


def find_program(name: str) -> str | None:
    """Return where a proxy is installed; Debian keeps servers outside an ordinary user's path."""
    return shutil.which(name, path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")


@dataclass
class Service:
    """Applies the first copy of each request and closes; answers the copies that follow with `status`.

    `deduplicates`: it knows each Idempotency-Key, and answers a request under a known one with what
    that made, or with 409 where `status` is 409. `made` counts the escrows, `released` the releases.
    """

    status: str
    deduplicates: bool = False
    made: dict[str, str] = field(default_factory=dict)
    released: int = 0
    requests: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def behave(self, seen: Seen, connection: socket.socket) -> None:
        """Answer one request."""
        with self._lock:
            if not seen.is_write:
                connection.sendall(http_reply("200 OK", self._record("tx_1")))
                return
            request, key = seen.header("X-Request-Id") or "", seen.header("Idempotency-Key") or ""
            if request not in self.requests:
                self.requests.add(request)
                if self.deduplicates and key in self.made:
                    connection.sendall(self._answer(key))
                    return
                self._apply(seen, request, key)
                hang_up(seen, connection)
                return
            connection.sendall(self._answer(key if self.deduplicates else request))

    def _apply(self, seen: Seen, request: str, key: str) -> None:
        if seen.method == "PUT":
            self.released += 1
        self.made[key if self.deduplicates else request] = f"tx_{len(self.made) + 1}"

    def _answer(self, name: str) -> bytes:
        if self.status.startswith("200"):
            return http_reply(self.status, self._record(self.made[name]))
        return http_reply(self.status, b'{"detail":"no"}', "Retry-After: 0")

    def _record(self, resource_id: str) -> bytes:
        state = "released" if self.released else "held"
        return f'{{"id":"{resource_id}","status":"{state}","amount":100,"currency":"USD"}}'.encode()


@contextlib.contextmanager
def proxied(name: str, service: Service, folder: Path) -> Iterator[str]:
    """Run a proxy in front of a service at two addresses; yields the base URL."""
    text, command = PROXIES[name]
    servers = [WireServer(service.behave) for _ in range(2)]
    kept = keep_port()
    port = kept.getsockname()[1]
    config = folder / f"{name}.conf"
    config.write_text(text.format(folder=folder, port=port, first=servers[0].port, second=servers[1].port))
    program, *arguments = command(config)
    log = folder / f"{name}.log"
    with (
        kept,
        log.open("wb") as output,
        subprocess.Popen([find_program(program) or program, *arguments], stdout=output, stderr=output) as process,
    ):
        try:
            _wait_until_listening(port, process, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(10)
            for server in servers:
                server.close()


def _wait_until_listening(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 10
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise AssertionError(f"the proxy does not listen: {log.read_text()}")
