"""The command-line tests that no other storage can pass: they read the journal's file, or start a second process."""

FILE_TESTS: dict[str, tuple[str, ...]] = {
    "cli/test_already_sent.py": ("test_recording_opens_no_new_journal_and_no_cap_stops_it",),
    "cli/test_accounts.py": ("test_key_is_not_readable_from_the_journal",),
    "cli/test_release_interrupted.py": (
        "test_reading_that_cannot_be_recorded_leaves_the_release_unknown",
        "test_release_decided_elsewhere_during_the_reading_is_unknown",
        "test_release_under_the_key_of_another_process_waits_for_its_result",
        "test_release_counts_as_sent_when_the_journal_fails_afterwards",
        "test_several_releases_stop_when_the_journal_fails",
        "test_release_waits_for_another_process_and_reports_its_outcome",
        "test_release_verified_by_another_process_during_its_reading_is_done",
    ),
    "cli/test_config.py": (
        "test_paths_are_printed_although_the_journal_cannot_be_read",
        "test_config_path_prints_paths_and_the_journal_id",
    ),
    "cli/test_doctor.py": ("test_damaged_changed_or_older_journal_fails",),
    "cli/test_fencing.py": ("*",),
    "cli/test_folders.py": ("*",),
    "cli/test_import.py": (
        "test_reused_entry_number_of_an_older_copy_is_another_write",
        "test_rows_of_a_run_elsewhere_are_done_in_that_run",
    ),
    "cli/test_journal.py": (
        "test_write_lost_in_a_crash_is_not_called_sent",
        "test_verify_compares_the_journal_with_a_saved_head",
        "test_verify_reports_a_valid_journal",
        "test_older_copy_is_refused_and_exported_as_incomplete",
        "test_an_unknown_that_a_crash_left_is_listed_as_unknown",
        "test_write_on_a_changed_journal_is_not_sent",
        "test_changed_record_is_never_shown",
        "test_verify_names_what_was_changed",
    ),
    "cli/test_retry.py": ("test_refusal_is_reported_when_the_journal_fails_before_the_next_attempt",),
    "cli/test_signing_secrets.py": ("test_secret_of_an_older_copy_does_not_replace_an_earlier_one",),
    "cli/test_journal_head.py": ("*",),
    "cli/test_successor.py": ("*",),
    "cli/test_outcomes_of_writes.py": ("test_without_a_usable_journal_nothing_is_sent",),
    "cli/test_profiles.py": (
        "test_another_journal_is_not_used",
        "test_list_without_a_journal_says_so",
        "test_live_write_is_sent_with_the_expected_journal",
        "test_a_live_write_is_refused_on_another_journal",
        "test_what_leads_to_the_required_journal_works_with_another",
    ),
    "cli/test_mounts.py": ("test_live_write_and_doctor_warn_of_a_mount_without_shared_locks",),
    "cli/test_resolve.py": (
        "test_read_does_not_overwrite_a_newer_record",
        "test_hint_with_the_url_of_an_entry_is_safe_to_paste",
    ),
    "cli/test_resolve_decisions.py": (
        "test_decision_does_not_overturn_what_another_process_verified_meanwhile",
        "test_key_in_a_reason_or_id_is_refused",
    ),
    "cli/test_version.py": ("test_version_reports_the_paths_and_format_that_are_used",),
    "cli/test_webhooks.py": ("test_the_journal_names_a_webhook_creation",),
    "cli/test_shared_journal.py": ("*",),
    "cli/test_shared_succession.py": ("*",),
}
"""File -> its tests; `*`: all of them."""


def needs_file(path: str, name: str) -> bool:
    """Whether a test needs the journal's file or a second process."""
    listed = next((tests for file, tests in FILE_TESTS.items() if path.endswith(file)), ())
    return "*" in listed or name in listed
