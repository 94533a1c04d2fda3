"""`journal import` of any file: a forged, damaged or unusual export is refused, or imported without harm."""

import hashlib
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import Run, ServiceAndRun

from cli.replies import CREATE, HELD, RELEASE, json_reply, writes_meet

JOURNAL_ID = "5e0c2f4e-0d5b-4c57-9a39-6f1c8a7f2b10"


def forge(*records: tuple[int, str, dict[str, Any]], journal_id: object = JOURNAL_ID) -> str:
    """Return an export whose chain is valid, with any records."""
    digest, lines = "0" * 64, [{"escrowctl_journal": 1, "journal_id": journal_id}]
    for sequence, (entry, kind, facts) in enumerate(records, start=1):
        at = "2026-11-21T03:12:44.000Z"
        text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(json.dumps([digest, sequence, entry, kind, at, text]).encode()).hexdigest()
        lines.append({"sequence": sequence, "entry": entry, "kind": kind, "at": at, "facts": facts, "digest": digest})
    lines.append({"head": {"sequence": len(records), "digest": digest}})
    return "".join(json.dumps(line) + "\n" for line in lines)


INTENT: dict[str, Any] = {
    "operation": "release_transaction",
    "service": "https://escrow.example.com",
    "site": "https://escrow.example.com",
    "profile": "a",
    "method": "PUT",
    "url": "https://escrow.example.com/api/v1/transactions/tx_1/release",
    "body": None,
    "idempotency_key": "k1",
    "likeness": "tx_1",
    "resource_id": "tx_1",
    "amount": "100",
    "currency": "USD",
    "reference": None,
    "reason": None,
    "despite": "",
    "operator": "root",
    "attempt": 1,
    "request_id": "r1",
}
DONE: dict[str, Any] = {
    "state": "done",
    "detail": "200",
    "http_status": 200,
    "result_id": None,
    "reply": None,
    "may_repeat": 0,
    "verified": 0,
}
IMPORT = INTENT | DONE | {"origin": f"{JOURNAL_ID} j1", "settled_at": None}


@pytest.mark.parametrize("amount", ["1E+3", "-0", "1e999", "9" * 50])
def test_export_with_any_amount_can_be_imported(service_and_run: ServiceAndRun, tmp_path: Path, amount: str) -> None:
    record = f'{{"id":"tx_1","status":"held","amount":{amount},"currency":"USD"}}'.encode()
    _, run = service_and_run(writes_meet(json_reply(b"", "204 No Content"), reads=json_reply(record)))
    assert run(*RELEASE).code == 0
    exported = tmp_path / "export.jsonl"
    exported.write_text(run("journal", "export").out)

    result = run("journal", "import", str(exported), environ={"ESCROWCTL_HOME": str(tmp_path / "other")})

    assert result.code == 0, result.err


def test_import_that_cannot_be_printed_is_recorded(service_and_run: ServiceAndRun, tmp_path: Path) -> None:
    _, run = service_and_run(json_reply(HELD))
    assert run(*CREATE).code == 0
    exported, elsewhere = tmp_path / "export.jsonl", {"ESCROWCTL_HOME": str(tmp_path / "other")}
    exported.write_text(run("journal", "export").out)

    with Path("/dev/full").open("w") as full:
        result = run("journal", "import", str(exported), stdout=full, environ=elsewhere)

    assert result.code == 12
    assert "1 added, 0 updated" in result.err
    assert len(run("journal", "list", "--json", environ=elsewhere).json) == 1


@pytest.mark.parametrize(
    "text",
    [
        forge((1, "intent", INTENT | {"number": 1})),
        forge((1, "intent", INTENT | {"state,seal) SELECT 1 --": "x"})),
        forge((1, "intent", {name: value for name, value in INTENT.items() if name != "url"})),
        forge((1, "intent", INTENT | {"resource_id": 5})),
        forge((1, "intent", INTENT | {"amount": "abc"})),
        forge((1, "intent", INTENT | {"despite": "x"})),
        forge((1, "intent", INTENT | {"attempt": 10**30})),
        forge((1, "intent", INTENT | {"profile": "\udc80"})),
        forge((1, "verdict", DONE)),
        forge((1, "intent", INTENT), (1, "verdict", DONE | {"state": "paid"})),
        forge((1, "word", INTENT)),
        forge((0, "intent", INTENT)),
        forge((1, "intent", INTENT | {"body": "{nojson"})),
        forge((1, "import", IMPORT | {"sent_at": "9999-99-99T99:99:99.999Z"})),
        forge((1, "import", IMPORT | {"origin": "x j1", "sent_at": "yesterday"})),
        forge((1, "intent", INTENT), journal_id="short"),
        forge((1, "intent", INTENT), journal_id=[1]),
        forge((1, "intent", INTENT), journal_id=""),
        "[" * 200_000,
        json.dumps({"escrowctl_journal": 1, "journal_id": JOURNAL_ID}) + "\n" + "[" * 200_000,
        "\ufffe\x00",
    ],
    ids=lambda _text: "file",
)
def test_file_that_no_export_can_be_is_refused(run: Run, home: Path, tmp_path: Path, text: str) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text(text)

    for line in (("import", str(path)), ("init", "--yes", "--from", str(path))):
        result = run("journal", *line, "--json")
        assert (result.code, result.out) == (2, "")
        assert "Nothing was imported." in result.error["message"]
    assert not home.exists()


def test_import_of_a_binary_or_missing_file_is_refused(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"\xff\xfe\n")

    results = [run("journal", "import", str(name), "--json") for name in (path, tmp_path, "/dev/zero")]
    deep = run("journal", "verify", "--head", "-", "--json", stdin="[" * 100_000)

    assert [result.code for result in results] == [2, 2, 2]
    assert "is not UTF-8 text" in results[0].error["message"]
    assert "is neither a file nor a pipe" in results[2].error["message"]
    assert deep.code == 6


def test_named_pipe_is_read_as_standard_input_is(run: Run, tmp_path: Path) -> None:
    assert run("--sandbox", *CREATE).code == 0
    exported, head = (run("--sandbox", "journal", "export", *more).out for more in ((), ("--head",)))

    imported = run("journal", "import", pipe_with(exported, tmp_path / "export"), "--json")
    checked = run("--sandbox", "journal", "verify", "--head", pipe_with(head, tmp_path / "head"), "--json")

    assert (imported.code, imported.json["added"]) == (0, 1)
    assert (checked.code, checked.json["valid"]) == (0, True)


def pipe_with(text: str, path: Path) -> str:
    os.mkfifo(path)
    threading.Thread(target=path.write_text, args=(text,), daemon=True).start()
    return str(path)
