"""The command-line tests that no other storage can pass: they read the journal's file, or start a second process."""

FILE_TESTS: dict[str, tuple[str, ...]] = {
    "cli/test_accounts.py": (
        "test_entries_of_an_older_journal_refuse_and_claim_nothing",
        "test_key_is_not_readable_from_the_journal",
    ),
    "cli/test_after_release.py": (
        "test_a_journal_that_fails_after_the_put_never_makes_it_unsent",
        "test_several_releases_stop_where_the_journal_fails",
        "test_wait_for_another_process_is_reported_once_at_a_terminal",
        "test_who_comes_while_another_sends_waits_and_reports_what_became_of_it",
    ),
    "cli/test_config.py": (
        "test_paths_are_printed_although_the_journal_cannot_be_read",
        "test_paths_are_printed_and_the_journal_s_id_once_there_is_one",
    ),
    "cli/test_fencing.py": ("*",),
    "cli/test_folders.py": ("*",),
    "cli/test_import.py": (
        "test_a_journal_is_not_restored_as_less_than_it_was",
        "test_a_number_that_a_restored_journal_gave_again_is_not_the_same_write",
    ),
    "cli/test_journal.py": (
        "test_a_head_kept_elsewhere_is_held_against_the_journal",
        "test_a_journal_of_a_later_version_is_refused",
        "test_a_journal_of_an_earlier_version_is_brought_up_to_date_and_guards_as_before",
        "test_a_journal_that_is_gone_is_not_read_as_an_empty_one",
        "test_a_journal_that_is_whole_is_said_to_be",
        "test_an_older_copy_is_not_read_as_all_there_is",
        "test_an_older_copy_of_the_journal_is_refused",
        "test_an_unknown_that_a_crash_left_is_listed_as_unknown",
        "test_journal_of_format_3_is_copied_brought_up_to_date_and_valid",
        "test_nothing_is_sent_on_a_journal_that_was_changed_where_it_matters",
        "test_what_was_changed_is_named",
    ),
    "cli/test_journal_head.py": ("*",),
    "cli/test_outcomes_of_writes.py": ("test_without_a_usable_journal_nothing_is_sent",),
    "cli/test_profiles.py": (
        "test_a_live_write_goes_out_on_the_journal_that_is_meant",
        "test_a_live_write_is_refused_on_another_journal",
    ),
    "cli/test_resolve.py": (
        "test_a_reading_does_not_overwrite_what_was_recorded_meanwhile",
        "test_the_key_never_stands_in_a_verdict",
    ),
    "cli/test_webhooks.py": ("test_the_journal_names_a_webhook_creation",),
}
"""File -> its tests; `*`: all of them."""


def needs_file(path: str, name: str) -> bool:
    """Whether a test needs the journal's file or a second process."""
    listed = next((tests for file, tests in FILE_TESTS.items() if path.endswith(file)), ())
    return "*" in listed or name in listed
