"""The transcripts that users are promised, typed at a real terminal of 100 columns or into a real bash."""

import re
from pathlib import Path

import pytest
from conftest import KEY
from wire_server import say_nothing, serving

from e2e.script import Program, plain

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{3})?Z")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def settled(text: str) -> str:
    """Return terminal text with what differs between runs replaced: times, ages and made-up keys."""
    text = _UUID.sub("UUID", _TIME.sub("TIME", plain(text)))
    return re.sub(r"[0-9]+ s ago", "N s ago", text)


def create_on_sandbox(program: Program) -> str:
    code, shown = program.terminal("--sandbox", "tx", "create", "--amount", "100", "--currency", "USD").finish()
    found = re.search(r"tx_[0-9A-Z]{8}", shown)
    assert found is not None, shown
    resource_id = found[0]
    assert (code, settled(shown)) == (
        0,
        "sandbox: built in, no real money\n"
        f"id          {resource_id}\n"
        "status      held\n"
        "amount      100\n"
        "currency    USD\n"
        "payer       usr_PAYER001\n"
        "payee       usr_PAYEE001\n"
        "created_at  TIME   N s ago\n"
        "updated_at  TIME   N s ago\n"
        f"next: escrowctl --sandbox tx release {resource_id}\n",
    )
    return resource_id


def test_without_configuration_both_ways_to_start_are_named(program: Program) -> None:
    code, shown = program.terminal("tx", "create", "--amount", "100", "--currency", "USD").finish()
    assert (code, plain(shown)) == (
        4,
        "error: nothing is configured: no profile, no API key, no base URL. Nothing was sent.\n"
        "hint: with an account:     escrowctl auth login\n"
        "      without an account:  escrowctl --sandbox tx create --amount 100 --currency USD\n",
    )
    assert not program.config.exists()


def test_escrow_is_created_released_and_refused_the_second_time(program: Program) -> None:
    resource_id = create_on_sandbox(program)

    release = program.terminal("--sandbox", "tx", "release", resource_id)
    release.answer("> ", f"{resource_id}\n")
    code, shown = release.finish()
    assert (code, plain(shown)) == (
        0,
        "sandbox: built in, no real money\n"
        f"  id {resource_id}   amount 100 USD   status held\n"
        f"A release cannot be undone. To release 100 USD, type {resource_id}:\n"
        f"> {resource_id}\n"
        f"{resource_id}   held -> released   confirmed by reading the escrow\n",
    )

    code, shown = program.terminal("--sandbox", "tx", "release", resource_id, "--yes").finish()
    assert (code, settled(shown)) == (
        7,
        "sandbox: built in, no real money\n"
        f"error: escrowctl already released {resource_id} N s ago (j2). This command sent nothing.\n",
    )
    assert program.journal("--sandbox") == [("create_transaction", "done"), ("release_transaction", "done")]


@pytest.mark.thorough
def test_wrong_confirmation_releases_nothing(program: Program) -> None:
    resource_id = create_on_sandbox(program)
    release = program.terminal("--sandbox", "tx", "release", resource_id)
    release.answer("> ", "yes\n")
    code, shown = release.finish()
    assert (code, plain(shown).splitlines()[-1]) == (
        3,
        f'error: you typed "yes" instead of "{resource_id}": {resource_id} was not released. Nothing was sent.',
    )
    assert program.journal("--sandbox") == [("create_transaction", "done")]


def test_a_thousands_separator_is_refused_with_the_amount_to_write(program: Program) -> None:
    code, shown = program.terminal("--sandbox", "tx", "create", "--amount", "1,000", "--currency", "USD").finish()
    assert (code, plain(shown)) == (
        2,
        'error: --amount "1,000" has a thousands separator: write 1000. Nothing was sent.\n',
    )


@pytest.mark.thorough
def test_id_in_a_shell_variable_is_read_through_a_pipe(program: Program) -> None:
    result = program.bash(
        "id=$(escrowctl --sandbox tx create --amount 100 --currency USD -q); "
        'escrowctl --sandbox tx get "$id" --json 2>/dev/null | python3 -c '
        "'import json, sys; print(json.load(sys.stdin)[\"status\"])'"
    )
    assert (result.code, result.out, result.err) == (0, "held\n", "")


@pytest.mark.thorough
def test_timed_out_create_is_refused_when_repeated(program: Program, tmp_path: Path) -> None:
    with serving(say_nothing) as server:
        configure_live(program, tmp_path, base_url=server.base_url)
        line = ("-p", "acme-live", "tx", "create", "--amount", "2500", "--currency", "EUR", "--reason", "order 8841")

        code, shown = program.terminal(*line, columns=200).finish()
        url = f"{server.base_url}/api/v1/transactions"
        assert (code, settled(shown)) == (
            12,
            f"live: acme-live, {server.base_url}\n"
            "unknown: the create was sent, but no reply came within 0.5 s. The escrow may or may not exist. "
            "escrowctl sent the create once.\n"
            f'  sent             TIME  POST {url}  {{"amount":2500,"currency":"EUR"}}\n'
            "  idempotency key  UUID  (this service is not known to deduplicate by it)\n"
            '  entry            j1  "order 8841"   request id UUID\n'
            "hint: resolve j1 before you repeat the create: escrowctl -p acme-live journal resolve j1\n",
        )

        code, shown = program.terminal(*line, columns=200).finish()
        assert (code, settled(shown)) == (
            12,
            f"live: acme-live, {server.base_url}\n"
            "error: an identical create (2500 EUR, N s ago, j1) still has an unknown outcome. "
            "This command sent nothing.\n"
            "hint: to resolve j1:                  escrowctl -p acme-live journal resolve j1\n"
            "      to create a second one anyway:  repeat the command with --allow-duplicate j1\n",
        )
        assert [seen.body for seen in server.writes] == [b'{"amount":2500,"currency":"EUR"}']


def configure_live(program: Program, folder: Path, *, base_url: str) -> None:
    """Write a live profile whose key is in a private file."""
    program.config.mkdir(parents=True, mode=0o700)
    key = folder / "acme.key"
    key.touch(mode=0o600)
    key.write_text(KEY + "\n")
    (program.config / "config.toml").write_text(
        f'[profiles.acme-live]\nbase_url = "{base_url}"\nmode = "live"\ntimeout = 0.5\napi_key_file = "{key}"\n'
    )
