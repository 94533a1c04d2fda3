"""What a run of `doctor` shows, check by check."""

from typing import Any

from conftest import Result


def read_checks(result: Result) -> list[dict[str, Any]]:
    """Return the checks as a pipe shows them, or as `--json` does."""
    if result.out.startswith("{"):
        document = result.json
        assert document["ok"] is (result.code == 0)
        return list(document["checks"])
    cells = ("name", "verdict", "finding")
    return [dict(zip(cells, line.split("\t"), strict=True)) for line in result.out.splitlines()]


def checks(result: Result) -> dict[str, str]:
    """Return the verdict of each check by its name."""
    return {one["name"]: one["verdict"] for one in read_checks(result)}


def check(result: Result, name: str) -> Any:
    """Return one check."""
    (found,) = [one for one in read_checks(result) if one["name"] == name]
    return found


def failed(result: Result) -> list[str]:
    return [name for name, verdict in checks(result).items() if verdict == "failed"]
