"""`escrowctl api`: any GET of the service, and the writes that have no command."""

from typing import Annotated, Literal

import typer

from escrowctl.options import AllowDuplicateOption, DataOption, DryRunOption, KeyOption, ReasonOption, YesOption
from escrowctl.session import session_of

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


def call(
    context: typer.Context,
    method: Annotated[
        Method, typer.Argument(metavar="METHOD", help="GET, POST, PUT, PATCH or DELETE.", case_sensitive=False)
    ],
    path: Annotated[str, typer.Argument(metavar="PATH", help="The path after the API prefix, such as /users/usr_1.")],
    data: DataOption = None,
    yes: YesOption = False,
    reason: ReasonOption = None,
    idempotency_key: KeyOption = None,
    allow_duplicate: AllowDuplicateOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Call a path of the service, and show the complete reply.

    For transactions and webhooks, only GET is accepted: other commands write them. Every write
    is recorded in the journal, and needs a confirmation or --yes.

    \b
    Examples:
      escrowctl api GET /users/usr_PAYER001 --json
      escrowctl api POST /notes --data '{"text": "checked"}'
    """
    from escrowctl.commands.raw import call_path  # noqa: PLC0415 - help does not need it
    from escrowctl.commands.writing import check_options  # noqa: PLC0415

    options = check_options(idempotency_key, reason, allow_duplicate)
    call_path(session_of(context), method, path, data, options, yes=yes, dry_run=dry_run)
