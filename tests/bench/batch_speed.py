"""What a batch costs: rows a second next to curl, HTTPie and bare httpx, with TLS, latency, throttled; a million rows.

Run it with `PYTHONPATH=tests python tests/bench/batch_speed.py --escrowctl BIN --http BIN [--only PART...] [--json
FILE]`; `--http` is HTTPie's program. Servers are nginx, PostgreSQL and `limited_server.py`, on loopback. The peers take
turns, and each figure is the median of its rounds; a batch's seconds are those of the whole command, start-up and file
check included.
It fails if a bound is missed. The latency is nginx's too (its echo module, Debian's libnginx-mod-http-echo): a
server in Python takes from the two cores what it is to measure.
"""

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from storage.postgres import Server, find_programs

KEY = "sk_test_0123456789abcdef"
REPLY = (
    '{"id":"tx_$request_id","status":"held","amount":100,"currency":"USD","payer":"usr_PAYER001",'
    '"payee":"usr_PAYEE001","created_at":"2026-11-21T03:12:44.123Z","note":"%s"}'
)
REPLY_BYTES = 200
REPLY = REPLY % ("x" * (REPLY_BYTES - len(REPLY) + 2 - 32 + len("$request_id")))
"""Another id each time: 32 hexadecimal digits of nginx."""

NGINX = """
load_module modules/ngx_http_echo_module.so;
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.err;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 100000000; default_type application/json;
  server {{ listen 127.0.0.1:{port}; location / {{ return 200 '{reply}'; }} }}
  server {{
    listen 127.0.0.1:{tls_port} ssl; ssl_certificate {folder}/tls.pem; ssl_certificate_key {folder}/tls.key;
    location / {{ return 200 '{reply}'; }}
  }}
  server {{ listen 127.0.0.1:{slow_port}; location / {{ echo_sleep {latency}; echo '{reply}'; }} }}
}}
"""
BODY = '{"amount":100,"currency":"USD"}'
ROUNDS = 3
STEPS = ["speed", "tls", "latency", "claimants", "throttled", "million", "bytes"]
LATENCY = 0.05


class Bench:
    """The programs, a folder for homes and files, and what was measured."""

    def __init__(self, escrowctl: str, http: str | None, folder: Path) -> None:
        self.escrowctl = escrowctl
        self.http = http
        self.folder = folder
        self.figures: dict[str, float] = {}
        self.missed: list[str] = []
        self._homes = 0

    def environ(self, url: str, home: Path) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        return kept | {
            "HOME": str(home), "ESCROWCTL_HOME": str(home), "ESCROWCTL_BASE_URL": url, "ESCROWCTL_API_KEY": KEY,
            "ESCROWCTL_CA_BUNDLE": str(self.folder / "tls.pem"),
        }  # fmt: skip

    def new_home(self) -> Path:
        self._homes += 1
        home = self.folder / f"home{self._homes}"
        home.mkdir(mode=0o700)
        return home

    def rows(self, count: int) -> Path:
        path = self.folder / f"rows{count}.csv"
        if not path.exists():
            with path.open("w") as file:
                file.write("reference,amount,currency\n")
                file.writelines(f"A-{number},100,USD\n" for number in range(count))
        return path

    def batch(self, url: str, count: int, concurrency: int, *options: str, home: Path | None = None) -> float:
        """Return the seconds of one command that sends so many rows."""
        place = home or self.new_home()
        words = [self.escrowctl, *options, "batch", "create", str(self.rows(count)), "--yes", "--json"]
        started = time.perf_counter()
        ended = subprocess.run(
            [*words, "--concurrency", str(concurrency)],
            env=self.environ(url, place), capture_output=True, text=True, check=False,
        )  # fmt: skip
        seconds = time.perf_counter() - started
        found = json.loads(ended.stdout)
        if found["done"] != count:
            raise SystemExit(f"{found}\n{ended.stderr[-2000:]}")
        if home is None:
            shutil.rmtree(place)
        return seconds

    def require(self, name: str, value: float, *, least: float | None = None, most: float | None = None) -> None:
        """Keep a figure, and whether it is within its bound."""
        self.figures[name] = round(value, 3)
        missed = (least is not None and value < least) or (most is not None and value > most)
        bound = f"at least {least:g}" if least is not None else f"at most {most:g}" if most is not None else ""
        print(f"  {name:<58} {value:>12,.2f}   {bound}{'   MISSED' * missed}", flush=True)
        if missed:
            self.missed.append(name)


def curl(url: str, count: int, folder: Path) -> float:
    words = ["xargs", "-P8", "-I{}", "curl", "--cacert", str(folder / "tls.pem"), "-sS", "-o", "/dev/null"]
    words += ["-X", "POST", "-H", "Content-Type: application/json", "-H", f"Authorization: Bearer {KEY}", "-d", BODY]
    return _xargs([*words, f"{url}/api/v1/transactions"], count, folder)


def httpie(program: str, url: str, count: int, folder: Path) -> float:
    words = ["xargs", "-P4", "-I{}", program, "--ignore-stdin", "POST", f"{url}/api/v1/transactions"]
    return _xargs([*words, f"Authorization:Bearer {KEY}", "amount:=100", "currency=USD"], count, folder)


def _xargs(words: list[str], count: int, folder: Path) -> float:
    numbers = folder / "numbers"
    numbers.write_text("".join(f"{number}\n" for number in range(count)))
    started = time.perf_counter()
    with numbers.open() as file:
        subprocess.run(
            words, stdin=file, stdout=subprocess.DEVNULL, check=True, env={**os.environ, "HOME": str(folder)}
        )
    return time.perf_counter() - started


def httpx_threads(url: str, count: int, threads: int) -> float:
    """Return the seconds of a bare loop of one httpx client per thread, in another process."""
    code = (
        "import sys, threading, httpx\n"
        "url, count, threads, key = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]\n"
        "def work():\n"
        "    with httpx.Client(headers={'Authorization': 'Bearer ' + key}) as client:\n"
        "        for _ in range(count // threads):\n"
        "            client.post(url, json={'amount': 100, 'currency': 'USD'}).json()\n"
        "all_ = [threading.Thread(target=work) for _ in range(threads)]\n"
        "[one.start() for one in all_]\n"
        "[one.join() for one in all_]\n"
    )
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code, f"{url}/api/v1/transactions", str(count), str(threads), KEY], check=True
    )
    return time.perf_counter() - started


def measure_speed(bench: Bench, url: str, rows: int) -> None:
    """Compare with the peers against a server that answers at once, all in turns."""
    rates: dict[str, list[float]] = {}

    def note(name: str, count: int, seconds: float) -> None:
        rates.setdefault(name, []).append(count / seconds)

    for _ in range(ROUNDS):
        note("xargs -P8 curl", 1000, curl(url, 1000, bench.folder))
        if bench.http:
            note("xargs -P4 http", 40, httpie(bench.http, url, 40, bench.folder))
        for size in (8, 32, 100):
            note(f"httpx, {size} threads", 3200, httpx_threads(url, 3200, size))
            note(f"batch, {size}", rows, bench.batch(url, rows, size))
    for name, found in rates.items():
        bench.require(f"{name}: rows/s", statistics.median(found))

    def compare(what: str, one: str, other: str, least: float | None = None) -> None:
        # Each round by itself: the machine is not equally fast in all of them.
        ratio = statistics.median(a / b for a, b in zip(rates[one], rates[other], strict=True))
        bench.require(what, ratio, least=least)

    compare("batch at 8 / curl", "batch, 8", "xargs -P8 curl", 1.8)
    compare("batch at 32 / curl", "batch, 32", "xargs -P8 curl", 2.5)
    if bench.http:
        compare("batch at 8 / HTTPie", "batch, 8", "xargs -P4 http", 50)
    # httpx sends all its requests over one connection a thread; a row has a connection for itself, as curl has.
    compare("batch at 8 / httpx, 8 threads", "batch, 8", "httpx, 8 threads")
    compare("batch at 32 / httpx, 32 threads", "batch, 32", "httpx, 32 threads")
    compare("batch at 100 / batch at 8", "batch, 100", "batch, 8", 0.8)


def measure_tls(bench: Bench, url: str, tls_url: str, rows: int) -> None:
    """Send the same rows with and without a TLS handshake for each, in turns; curl too."""
    sends: dict[str, Callable[[], float]] = {
        "batch, 8, TLS": lambda: rows / bench.batch(tls_url, rows, 8),
        "batch, 8, no TLS": lambda: rows / bench.batch(url, rows, 8),
        "xargs -P8 curl, TLS": lambda: 1000 / curl(tls_url, 1000, bench.folder),
    }
    rounds = [{name: send() for name, send in sends.items()} for _ in range(ROUNDS)]
    for name in sends:
        bench.require(f"{name}: rows/s", statistics.median(rates[name] for rates in rounds))
    for one, other in (("batch, 8, TLS", "batch, 8, no TLS"), ("batch, 8, TLS", "xargs -P8 curl, TLS")):
        bench.require(f"{one} / {other}", statistics.median(rates[one] / rates[other] for rates in rounds))


def measure_latency(bench: Bench, url: str) -> None:
    """Send 20 seconds' worth to a server that takes its time for each reply, but any number at once."""
    for size, least in ((8, 0.9), (32, 0.9), (64, 0.8)):
        ideal = size / LATENCY
        count = int(20 * ideal)
        found = statistics.median(count / bench.batch(url, count, size) for _ in range(ROUNDS))
        bench.require(f"{LATENCY * 1000:.0f} ms latency, {size} at once / ideal", found / ideal, least=least)


def measure_claimants(bench: Bench, url: str) -> None:
    """Send rows to the server with latency from one process, and from some that share the batch, in turns."""
    with closing(Server(find_programs())) as server:
        for journal, processes, least in (("a file", 2, 1.8), ("PostgreSQL", 3, 2.5)):
            ratios = []
            for turn in range(ROUNDS):
                rates = []
                for number in (1, processes):
                    environs = [bench.environ(url, bench.new_home())] * number
                    if journal == "PostgreSQL":
                        server.create_journal(name := f"turn{turn}_{number}")
                        shared = {"ESCROWCTL_JOURNAL": f"{server.url}?journal={name}"}
                        environs = [bench.environ(url, bench.new_home()) | shared for _ in range(number)]
                    rates.append(share_batch(bench, environs))
                ratios.append(rates[1] / rates[0])
            what = f"{LATENCY * 1000:.0f} ms latency: {processes} processes with 16 at once, journal in {journal} / one"
            bench.require(what, statistics.median(ratios), least=least)


def share_batch(bench: Bench, environs: Sequence[dict[str, str]]) -> float:
    """Return the rows a second of one batch with a process for each environment and 20 seconds' worth for each."""
    count, words = len(environs) * int(20 * 16 / LATENCY), [bench.escrowctl, "batch"]
    rest = ["--yes", "--concurrency", "16"]
    streams: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = time.perf_counter()
    first, *others = environs
    processes = [subprocess.Popen([*words, "create", str(bench.rows(count)), *rest], env=first, **streams)]
    for environ in others:
        # There is nothing to join before the first has checked its file.
        while subprocess.run([*words, "show", "b1"], env=environ, **streams, check=False).returncode:
            if processes[0].poll() is not None:
                break
        processes.append(subprocess.Popen([*words, "work", "b1", *rest], env=environ, **streams))
    if any(process.wait() for process in processes):
        raise SystemExit("the rows were not sent")
    return count / (time.perf_counter() - started)


def measure_throttled(bench: Bench, url: str, limit: int) -> None:
    """Send 20 seconds' worth to a server that takes `limit` a second."""
    home, count = bench.new_home(), limit * 20
    (home / "config.toml").write_text(
        f'default_profile = "a"\n[profiles.a]\nbase_url = "{url}"\nretry_throttled = true\napi_key_file = "k"\n'
    )
    (home / "k").write_text(KEY)
    (home / "k").chmod(0o600)
    seconds = bench.batch(url, count, 8, "-p", "a", home=home)
    bench.require(f"{limit} requests/s allowed: seconds / ideal", seconds / (count / limit), most=1.15)


def measure_million(bench: Bench, url: str, count: int) -> None:
    """Check a large file and send its first rows: speed of the check, time to the first request, memory."""
    home, path = bench.new_home(), bench.rows(count)
    environ = bench.environ(url, home)
    words = [bench.escrowctl, "batch", "create", str(path)]
    started = time.perf_counter()
    subprocess.run([*words, "--dry-run"], env=environ, capture_output=True, check=True)
    checked = time.perf_counter() - started
    bench.require(f"{count:,} rows: checked rows/s (dry run, whole command)", count / checked, least=30_000)
    started = time.perf_counter()
    streams: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([*words, "--yes", "--concurrency", "32"], env=environ, **streams)
    peak = Peak(process.pid)
    assert process.stderr is not None
    for line in process.stderr:
        if "canary" in line:
            bench.require(f"{count:,} rows: seconds to the first reply", time.perf_counter() - started, most=60)
            break
    time.sleep(20)
    process.terminate()
    process.communicate()
    bench.require(f"{count:,} rows: peak memory of all processes, MB", peak.end() / 1e6, most=150)
    shutil.rmtree(home)


class Peak(threading.Thread):
    """The peak of the proportional memory (PSS) of a process and its children, sampled."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._most = 0
        self._ended = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._ended.wait(0.05):
            self._most = max(self._most, _pss(self._pid))

    def end(self) -> int:
        self._ended.set()
        self.join()
        return self._most


def _pss(pid: int) -> int:
    """Return the bytes of a process and its children; 0 of one that has ended."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        found = re.search(r"^Pss: +(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return (int(found[1]) * 1024 if found else 0) + sum(_pss(int(child)) for child in children)


def measure_bytes(bench: Bench, url: str, count: int) -> None:
    home = bench.new_home()
    bench.batch(url, count, 32, home=home)
    size = (home / "state" / "journal.db").stat().st_size
    bench.require(f"journal bytes a row ({REPLY_BYTES}-byte reply)", size / count, most=1500)
    shutil.rmtree(home)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--escrowctl", default=shutil.which("escrowctl"))
    parser.add_argument("--http", default=shutil.which("http"))
    parser.add_argument("--rows", type=int, default=16000)
    parser.add_argument("--million", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="*", default=STEPS)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        bench = Bench(given.escrowctl, given.http, folder)
        port = 18480
        (folder / "nginx.conf").write_text(
            NGINX.format(folder=folder, port=port, slow_port=port + 1, tls_port=port + 3, latency=LATENCY, reply=REPLY)
        )
        make_certificate(folder)
        start(stack, ["nginx", "-c", str(folder / "nginx.conf")])
        limited = [sys.executable, str(Path(__file__).with_name("limited_server.py"))]
        start(stack, [*limited, str(port + 2), "--latency", "0.005", "--limit", "100"])
        time.sleep(1)
        urls = [f"http://127.0.0.1:{port + number}" for number in range(3)]
        machine = (
            f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        )
        print(f"{datetime.now(UTC):%Y-%m-%d}, {machine}, medians of {ROUNDS}")
        steps: dict[str, Callable[[], Any]] = {
            "speed": lambda: measure_speed(bench, urls[0], given.rows),
            "tls": lambda: measure_tls(bench, urls[0], f"https://127.0.0.1:{port + 3}", given.rows),
            "latency": lambda: measure_latency(bench, urls[1]),
            "claimants": lambda: measure_claimants(bench, urls[1]),
            "throttled": lambda: measure_throttled(bench, urls[2], 100),
            "bytes": lambda: measure_bytes(bench, urls[0], given.rows),
            "million": lambda: measure_million(bench, urls[0], given.million),
        }
        for name in given.only:
            steps[name]()
        if given.json:
            document = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine, "figures": bench.figures}
            given.json.write_text(json.dumps(document | {"missed": bench.missed}, indent=2) + "\n")
    sys.exit(f"missed: {', '.join(bench.missed)}" if bench.missed else None)


def make_certificate(folder: Path) -> None:
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    words += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.pem")]
    subprocess.run([*words, *files], capture_output=True, check=True)


def start(stack: ExitStack, words: list[str]) -> None:
    process = stack.enter_context(subprocess.Popen(words))
    stack.callback(process.terminate)


if __name__ == "__main__":
    main()
