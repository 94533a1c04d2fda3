"""`escrowctl api`: any call of the service, under the same guards as the commands that know it."""

from typing import Annotated

import typer

from escrowctl.errors import bad_value
from escrowctl.options import DataOption, DespiteOption, DryRunOption, KeyOption, ReasonOption, YesOption
from escrowctl.session import session_of


def call(
    context: typer.Context,
    method: Annotated[str, typer.Argument(metavar="METHOD", help="GET, POST, PUT, PATCH or DELETE.")],
    path: Annotated[str, typer.Argument(metavar="PATH", help="Below the API's prefix, such as /users/usr_1.")],
    data: DataOption = None,
    yes: YesOption = False,
    reason: ReasonOption = None,
    idempotency_key: KeyOption = None,
    despite: DespiteOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Call any path of the service, and show the whole reply.

    A path that is one of the contract's writes is that write: a release spelled by hand meets the
    same lock, confirmation and refusals as tx release. Any other write is confirmed, or needs --yes.

    \b
    Examples:
      escrowctl api GET /users/usr_PAYER001 --json
      escrowctl api POST /transactions --data '{"amount": 100, "currency": "USD"}'
    """
    # The tree imports this module at every start; what calls need is for those who call.
    from escrowctl.commands.arguments import check_circumstances, read_data  # noqa: PLC0415
    from escrowctl.commands.calls import Writing, read, write  # noqa: PLC0415
    from escrowctl.contract.operations import Access  # noqa: PLC0415
    from escrowctl.contract.paths import parse_call  # noqa: PLC0415

    session = session_of(context)
    service = session.service
    called = parse_call(method, path, base=service.origin.path, prefix=service.api_prefix)
    body = read_data(data, session.surroundings.stdin) if data is not None else None
    if called.operation.access is Access.WRITE:
        said = check_circumstances(idempotency_key, reason, despite)
        write(session, Writing(called, body, said, yes=yes, dry_run=dry_run))
        return
    if data is not None or dry_run:
        raise bad_value(f"{'--data' if data is not None else '--dry-run'} is for writes: a GET sends no body.")
    read(session, called)
