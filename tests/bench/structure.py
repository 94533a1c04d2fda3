"""Measure the structure of a tree: its size, what a command imports, and how far an amount travels.

pytest does not run this. One figure a line; it works on older and newer trees with other module names:

    python3 tests/bench/structure.py            # this checkout
    python3 tests/bench/structure.py ../other --paths

Lines and functions are those of `escrowctl/**/*.py`; a module has code where it has more than a docstring; a cycle is
a group of modules that import each other, with imports inside of functions and for types only. `tx get` and
`tx create` run as processes of their own, against a server on loopback and with an empty ESCROWCTL_HOME; own modules
are counted at their end. SQL statements are those of the second create on one journal, as SQLite traces them.

Hops of the amount: the own functions that it passes on its way from the command's function to the socket, each once.
Those are the functions on the stack at the moment when the request's bytes are written that hold the amount in an
argument or a local variable, without what runs before the command's function (there it is still one of argv), and the
functions that such a function has called before, with the amount, and that returned it in another form. A side branch
that returns the amount is counted too. `--paths` prints the functions.
"""

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LONG_FUNCTION, LONG_FILE = 50, 400
AMOUNT = "7319.25"
CREATE = ("tx", "create", "--amount", AMOUNT, "--currency", "USD")
GET = ("tx", "get", "tx_1")

_CHILD = """
import json, os, runpy, socket, sqlite3, sys
home, figures_file, amount, trace_hops, *words = sys.argv[1:]
own = os.path.join(os.getcwd(), "escrowctl") + os.sep
statements, hops = [], []
connect = sqlite3.connect

def traced_connect(*given, **named):
    connection = connect(*given, **named)
    connection.set_trace_callback(statements.append)
    return connection

def carries(value, depth=5):
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        return amount in (value if isinstance(value, str) else bytes(value).decode("latin-1"))
    if depth == 0 or value is None or isinstance(value, (bool, type)):
        return False
    if isinstance(value, dict):
        return any(carries(one, depth - 1) for one in value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(carries(one, depth - 1) for one in value)
    if type(value).__module__ in ("decimal", "builtins"):
        return amount in str(value) if type(value).__name__ in ("Decimal", "float", "int") else False
    if type(value).__module__.split(".")[0] not in ("escrowctl", "httpx", "httpcore"):
        return False
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    held = [getattr(value, name, None) for name in slots] + list(getattr(value, "__dict__", {}).values())
    return any(carries(one, depth - 1) for one in held)

def name_of(frame):
    code = frame.f_code
    return f"{code.co_filename[len(own):]}:{code.co_firstlineno} {getattr(code, 'co_qualname', code.co_name)}"

def is_own(frame):
    return frame.f_code.co_filename.startswith(own)

def holds(frame):
    return any(carries(value) for name, value in list(frame.f_locals.items()) if name != "self")

returned, given_amount = {}, set()

def profile(frame, event, arg):
    if not is_own(frame):
        return
    if event == "call" and holds(frame):
        given_amount.add(frame)
    elif event == "return" and frame in given_amount:
        given_amount.discard(frame)
        if carries(arg) and not frame.f_code.co_name.startswith("__"):
            returned.setdefault(frame.f_back, []).append(name_of(frame))

def note_hops(data):
    if hops or not carries(bytes(data)):
        return
    sys.setprofile(None)
    stack, frame = [], sys._getframe(2)
    while frame is not None:
        stack.append(frame)
        frame = frame.f_back
    stack.reverse()
    typer = [at for at, frame in enumerate(stack) if f"{os.sep}typer{os.sep}" in frame.f_code.co_filename]
    for frame in stack[typer[-1] + 1 if typer else 0:]:
        if is_own(frame) and (holds(frame) or carries(frame.f_locals.get("self"))):
            hops.append(name_of(frame))
            hops.extend(f"    {name}" for name in returned.get(frame, ()))
    hops[:] = dict.fromkeys(hops)

class Socket(socket.socket):
    def send(self, data, *more):
        note_hops(data)
        return super().send(data, *more)

    def sendall(self, data, *more):
        note_hops(data)
        return super().sendall(data, *more)

def watched(method):
    def send(self, data, *more):
        note_hops(data)
        return method(self, data, *more)
    return send

sqlite3.connect = traced_connect
if trace_hops == "yes":
    for name in ("send", "sendall"):
        setattr(socket.socket, name, watched(getattr(socket.socket, name)))
    sys.setprofile(profile)
sys.argv = ["escrowctl", *words]
code = 0
try:
    runpy.run_module("escrowctl", run_name="__main__")
except SystemExit as ended:
    code = int(ended.code or 0)
sys.setprofile(None)
own_modules = sorted(name for name in sys.modules if name.split(".")[0] == "escrowctl")
with open(figures_file, "w") as file:
    sql = [text for text in statements if not text.startswith("--")]
    json.dump({"code": code, "modules": own_modules, "statements": sql, "hops": hops}, file)
"""


class Server(BaseHTTPRequestHandler):
    """Answers a read and a create with the same record."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = json.dumps({"id": "tx_1", "status": "held", "amount": float(AMOUNT), "currency": "USD"}).encode()
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 - the base class's way of naming

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""


def main() -> int:
    """Print the figures of a tree; return 2 where a command of it does not run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", nargs="?", type=Path, default=Path(__file__).parents[2])
    parser.add_argument("--paths", action="store_true", help="print long functions and files, cycles, and the hops")
    given = parser.parse_args()
    figures, paths = measure_source(given.tree / "escrowctl")
    try:
        more, hops = measure_commands(given.tree.resolve())
    except RuntimeError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for name, figure in {**figures, **more}.items():
        sys.stdout.write(f"{figure:>7}  {name}\n")
    if given.paths:
        sys.stdout.write("\n".join(["", *paths, "", *hops, ""]))
    return 0


def measure_source(package: Path) -> tuple[dict[str, int], list[str]]:
    """Return the figures that the source shows, and the long functions, long files and cycles."""
    files = {path: path.read_text("utf-8") for path in sorted(package.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in files.items()}
    functions = [
        (path, node)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    long_functions = [
        f"{path.relative_to(package)}:{node.lineno} {node.name}"
        for path, node in functions
        if (node.end_lineno or node.lineno) - node.lineno + 1 > LONG_FUNCTION
    ]
    lines = {path: len(text.splitlines()) for path, text in files.items()}
    long_files = [f"{path.relative_to(package)}: {count}" for path, count in lines.items() if count > LONG_FILE]
    cycles = find_cycles(imports_of(package, trees))
    figures = {
        "lines": sum(lines.values()),
        "modules with code": sum(has_code(tree) for tree in trees.values()),
        "functions": len(functions),
        f"functions over {LONG_FUNCTION} lines": len(long_functions),
        f"files over {LONG_FILE} lines": len(long_files),
        "import cycles": len(cycles),
    }
    return figures, [*long_functions, *long_files, *(" <-> ".join(sorted(cycle)) for cycle in cycles)]


def has_code(tree: ast.Module) -> bool:
    """Whether a module has more than a docstring."""
    return any(not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) for node in tree.body)


def imports_of(package: Path, trees: dict[Path, ast.Module]) -> dict[str, set[str]]:
    """Return the own modules that each module names in an import statement, anywhere in it."""
    names = {path: ".".join(path.relative_to(package.parent).with_suffix("").parts) for path in trees}
    names = {path: name.removesuffix(".__init__") for path, name in names.items()}
    known = set(names.values())
    graph: dict[str, set[str]] = {name: set() for name in known}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                graph[names[path]] |= {alias.name for alias in node.names} & known
            elif isinstance(node, ast.ImportFrom) and node.module in known:
                full = {f"{node.module}.{alias.name}" for alias in node.names}
                graph[names[path]] |= (full & known) or {node.module}
    return graph


def find_cycles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the groups of modules that reach each other."""

    def reached_from(start: str) -> set[str]:
        found: set[str] = set()
        waiting = [start]
        while waiting:
            for name in graph[waiting.pop()] - found:
                found.add(name)
                waiting.append(name)
        return found

    reach = {name: reached_from(name) for name in graph}
    groups = {
        frozenset(other for other in reach[name] if name in reach[other]) for name in graph if name in reach[name]
    }
    return [set(group) for group in groups]


def measure_commands(tree: Path) -> tuple[dict[str, int], list[str]]:
    """Return the figures that running commands show, and the hops; raises RuntimeError where one fails."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        environ = {
            "PATH": os.defpath,
            "HOME": folder,
            "PYTHONDONTWRITEBYTECODE": "1",
            "ESCROWCTL_HOME": str(Path(folder) / "home"),
            "ESCROWCTL_BASE_URL": f"http://127.0.0.1:{server.server_port}",
            "ESCROWCTL_API_KEY": "sk_test_0123456789abcdef",
        }
        runs = _runs(tree, environ, Path(folder) / "figures.json")
        get, create = next(runs), next(runs)
        again, hops = next(runs), next(runs)
    server.shutdown()
    figures = {
        "own modules imported by tx get": len(get["modules"]),
        "own modules imported by tx create": len(create["modules"]),
        "SQL statements of a tx create": len(again["statements"]),
        "own hops of the amount": len(hops["hops"]),
    }
    return figures, hops["hops"]


def _runs(tree: Path, environ: dict[str, str], file: Path) -> Iterator[dict[str, Any]]:
    for words, trace_hops in (
        (GET, "no"),
        (CREATE, "no"),
        ((*CREATE, "--reference", "2"), "no"),
        ((*CREATE, "--reference", "3"), "yes"),
    ):
        line = [sys.executable, "-c", _CHILD, environ["HOME"], str(file), AMOUNT, trace_hops, *words]
        done = subprocess.run(line, cwd=tree, env=environ, capture_output=True, text=True, check=False)
        figures = json.loads(file.read_text()) if done.returncode == 0 else {"code": done.returncode}
        if figures["code"]:
            raise RuntimeError(f"escrowctl {' '.join(words)} ended with {figures['code']}: {done.stderr}")
        file.unlink()
        yield figures


if __name__ == "__main__":
    sys.exit(main())
