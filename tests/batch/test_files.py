"""What a file may look like, and what is expected of one that cannot be sent: every line, and nothing sent."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from conftest import KEY
from e2e.script import Program, clean_environment
from wire_server import Seen

from batch.conftest import Start, WriteRows, counts_of

RUN = ("--yes", "--json")
GOOD = 'reference,amount,currency,payee,body.note\nA-1,100,EUR,Müller,"two\r\nlines"\nA-2,101,USD,"Co, Ltd",x\n'


@pytest.mark.parametrize(
    "text",
    [
        GOOD.encode(),
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace("\n", "\r\n").replace("\r\r\n", "\r\n").encode(),
        GOOD.replace('"Co, Ltd"', "Co").replace(",", ";").encode(),
        GOOD.replace('"Co, Ltd"', "Co").replace(",", "\t").encode(),
        GOOD.replace('"Co, Ltd"', "Co").replace(",", "|").encode(),
        b"\n" + GOOD.replace("\nA-2", "\n\n,,,,\nA-2").encode(),
        GOOD.removesuffix("\n").encode(),
        b'{"reference":"A-1","amount":100,"currency":"EUR"}\n\n{"reference":"A-2","amount":"101","currency":"USD"}\n',
    ],
    ids=["plain", "BOM", "CRLF", "semicolons", "tabs", "bars", "blank lines", "no last line end", "JSON lines"],
)
def test_file_is_read_as_it_is_written(start: Start, rows: WriteRows, text: bytes) -> None:
    service, run = start()

    result = run("create", str(rows(text=text)), *RUN)

    assert (result.code, counts_of(result)) == (0, (2, 0, 0, 0)), result.err
    assert service.applied == {"100": 1, "101": 1}


@pytest.mark.parametrize(
    ("lines", "flawed"),
    [
        (['A-1,"1.250,00",EUR', "A-2,,EUR", "A-3,1.001,EUR", "A-4,0,EUR"], [2, 3, 4, 5]),
        (["A-1,100,EURO", "A-1,2,EUR"], [2, 3]),
        (["A-1,100,EUR", "a-1 ,1,EUR", "a-1,2,EUR"], [4]),
        (["A-1,100", "A-2,100,EUR,x"], [2, 3]),
        (['"A\n1",100,EUR', "A-2,x,EUR"], [2, 4]),
        (['A-1,"100,EUR'], [2]),
        (["A-1,100,XQX", f"{KEY},1,EUR"], [2, 3]),
    ],
    ids=["amounts", "twice", "looks alike", "cells", "line end in a cell", "open quote", "key"],
)
def test_every_flaw_is_named_by_its_line(start: Start, rows: WriteRows, lines: list[str], flawed: list[int]) -> None:
    service, run = start()
    text = "\n".join(["reference,amount,currency", *lines, ""])

    result = run("create", str(rows(text=text)), *RUN)
    shown = run("create", str(rows(text=text)), "--yes").err

    assert (result.code, result.error["outcome"], service.received) == (2, "not_sent", [])
    assert [flaw["line"] for flaw in result.error["flaws"]] == flawed
    assert [int(line) for line in re.findall(r"^  line (\d+)", shown, re.MULTILINE)] == flawed
    assert KEY not in result.err + shown
    assert run("list", "--json").json == []


@pytest.mark.representative("empty", "capital", "reference*", "twin*")
@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"reference,amount,currency\n",
        b"A-1,100,EUR\n",
        b"Amount,currency\n1,EUR\n",
        b"amount,currency,result.id\n1,EUR,tx_1\n",
        b"PK\x03\x04\x14\x00\x06",
        "amount,currency\n1,EUR\n".encode("utf-16"),
        b'[{"amount":1,"currency":"EUR"}]\n',
        b"amount,currency,amount\n1,EUR,2\n",
        b"amount,,currency\n1,EUR,2\n",
        b'amount,currency\n"1\xff",EUR\n',
        b"amount,currency\n" + b"9" * (1024 * 1024 + 5) + b",EUR\n1,EUR\n",
        b"amount,currency,body.Amount\n1,EUR,2\n",
        b"amount,currency,body.a,body.a.b\n1,EUR,2,3\n",
        b"amount,currency,body.api_key\n1,EUR,hush\n",
        b'{"reference":["A-1"],"amount":"1","currency":"EUR"}\n',
        "reference,amount,currency\n\u00e9-1,1,EUR\ne\u034f\u0301-1,2,EUR\n".encode(),
        "reference,amount,currency\n\u00e9-1,1,EUR\ne\ufe0f\u0301-1,2,EUR\n".encode(),
    ],
    ids=[
        *("empty", "header alone", "no header", "capital", "results", "workbook", "UTF-16", "JSON array"),
        *("column twice", "no name", "not UTF-8", "long line", "body.Amount", "body twice", "secret"),
        *("reference that is no text", "twin by a joiner", "twin by a selector"),
    ],
)
def test_file_that_cannot_be_sent_is_refused(start: Start, rows: WriteRows, text: bytes) -> None:
    service, run = start()

    result = run("create", str(rows(text=text)), "--yes")

    assert (result.code, service.received) == (2, []), result.err


def test_header_of_many_columns_is_checked_in_linear_time(start: Start, rows: WriteRows) -> None:
    _, run = start()
    names = ["reference", "amount", "currency", *(f"c{number}" for number in range(30_000))]
    path = rows(text=",".join(names) + "\n" + ",".join(["A-1", "1", "EUR", *["x"] * 30_000]) + "\n")
    began = time.monotonic()

    result = run("create", str(path), "--dry-run")

    # A comparison of each name with all the others takes ten seconds and more.
    assert (result.code, time.monotonic() - began < 5) == (0, True)


def test_live_rows_need_references(start: Start, rows: WriteRows) -> None:
    _, run = start(*[lambda _number, _seen: ""], 'mode = "live"')

    missing = run("create", str(rows(text="amount,currency\n1,EUR\n")), *RUN)
    empty = run("create", str(rows(text="amount,currency,reference\n1,EUR,\n")), *RUN)

    shown = run("create", str(rows(text="amount,currency,reference\n1,EUR,\n")), "--yes")

    assert (missing.code, empty.code, shown.code) == (2, 2, 2)
    assert 'no column "reference"' in missing.error["message"]
    assert "needs its own reference" in empty.error["flaws"][0]["why"]


def test_rows_come_from_standard_input(start: Start) -> None:
    service, run = start()
    text = "amount,currency\n1,EUR\n2,EUR\n"

    asked, done = run("create", "-", stdin=text), run("create", "-", *RUN, stdin=text)

    assert (asked.code, done.code, service.applied) == (3, 0, {"1": 1, "2": 1})


def test_body_columns_make_the_body(start: Start, rows: WriteRows) -> None:
    bodies: list[bytes] = []

    def answer(_number: int, seen: Seen) -> str:
        bodies.append(seen.body)
        return ""

    _, run = start(answer)
    text = "amount,currency,body.payee.name,body.payee.city,body.note\n5.50,EUR,Ann,,hi\n"

    assert run("create", str(rows(text=text)), *RUN).code == 0
    assert bodies == [b'{"amount":5.50,"currency":"EUR","payee":{"name":"Ann"},"note":"hi"}']


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--expect-count", "3"), 0),
        (("--expect-count", "4"), 3),
        (("--expect-total", "EUR=303"), 0),
        (("--expect-total", "EUR=303.00"), 0),
        (("--expect-total", "EUR=304"), 3),
        (("--expect-total", "USD=1"), 3),
        (("--expect-total", "EUR=303", "--expect-total", "EUR=303"), 2),
        (("--expect-total", "303"), 2),
        (("--concurrency", "0"), 2),
        (("--concurrency", "129"), 2),
        (("--rps", "0"), 2),
        (("--rps", "nan"), 2),
        (("--results", "x.txt"), 2),
        (("--results", "/missing/x.csv"), 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_options_are_checked_first(start: Start, rows: WriteRows, options: tuple[str, ...], code: int) -> None:
    service, run = start()

    result = run("create", str(rows(3)), "--yes", *options)

    assert (result.code, len(service.received)) == (code, 0 if code else 3), result.err


def test_number_of_rows_is_typed(start: Start, rows: WriteRows) -> None:
    service, run = start()
    path = str(rows(12))

    wrong = run("create", path, stdin="yes\n", terminal=True)
    nobody = run("create", path)
    right = run("create", path, stdin="12\n", terminal=True)

    assert (wrong.code, nobody.code, right.code) == (3, 3, 0)
    assert (len(service.received), "create 12 escrows" in wrong.err) == (12, True)
    assert "EUR   12 rows   1,266" in wrong.err


@pytest.mark.parametrize("resumed", [False, True])
def test_dry_run_prints_the_plan_as_json(start: Start, rows: WriteRows, *, resumed: bool) -> None:
    service, run = start(lambda number, _seen: "401 No" if number > 1 else "")
    path = str(rows(text="reference,amount,currency\nA-1,1.10,EUR\nA-2,2.20,EUR\nA-3,3,USD\n"))
    if resumed:
        run("create", path, *RUN, "--concurrency", "1")
    sent = len(service.received)

    result = run("create", path, "--dry-run", "--json")

    plan = {"rows": 2, "totals": {"EUR": 2.2, "USD": 3}} if resumed else {"rows": 3, "totals": {"EUR": 3.3, "USD": 3}}
    assert (result.code, result.json, len(service.received)) == (0, {"dry_run": True, "batch": "b1", **plan}, sent)
    assert run("list", "-q").out == ("b1\n" if resumed else "")


def test_caps_count_all_rows_together(start: Start, rows: WriteRows) -> None:
    service, run = start(lambda _number, _seen: "", 'caps.EUR = "300"')

    over = run("create", str(rows(3)), *RUN)
    under = run("create", str(rows(2)), *RUN)

    assert (over.code, under.code, len(service.received)) == (5, 0, 2)


def test_read_only_profile_sends_nothing(start: Start, rows: WriteRows) -> None:
    service, run = start(lambda _number, _seen: "", "read_only = true")

    refused, rehearsed = run("create", str(rows(3)), *RUN), run("create", str(rows(3)), "--dry-run")

    assert (refused.code, rehearsed.code, service.received) == (5, 0, [])
    assert "read_only" in rehearsed.err


@pytest.mark.slow
def test_large_file_is_checked_in_little_memory(rows: WriteRows, tmp_path: Path) -> None:
    header, count = "reference,amount,currency,payee\n", 100_000
    small, large = rows(text=f"{header}A-1,1,EUR,x\n"), tmp_path / "large.csv"
    large.write_text(header + "".join(f"A-{number},{number}.50,EUR,Person {number}\n" for number in range(count)))
    program = Program(clean_environment(tmp_path / "home"))

    def measure(path: Path) -> int:
        """Return the most kilobytes that a process had, as the system counts them."""
        words = ("--sandbox", "batch", "create", str(path), "--dry-run")
        with program.start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return usage.ru_maxrss

    assert measure(large) - measure(small) < count * 0.15
