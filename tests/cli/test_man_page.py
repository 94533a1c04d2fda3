"""escrowctl(1): up to date, complete, without a flaw that groff reports, and in the wheel."""

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from conftest import Run

from escrowctl.topics.topic import TOPICS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "escrowctl" / "topics" / "escrowctl.1"


def test_stored_page_is_the_one_that_help_prints(run: Run) -> None:
    # After a change: python -m escrowctl help man > escrowctl/topics/escrowctl.1
    assert run("help", "man").out == PAGE.read_text("utf-8")


def test_groff_reports_no_flaw_and_lines_fit_80_columns() -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    command = ["groff", "-man", "-Tutf8", "-ww", "-P-c", "-rLL=80n", str(PAGE)]

    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)

    assert done.stderr == ""
    shown = [re.sub(".\b", "", line) for line in done.stdout.splitlines()]
    assert [line for line in shown if len(line) > 80] == []
    assert "       --amount AMOUNT" in shown


def test_wheel_has_the_page_the_topics_and_the_licence(tmp_path: Path) -> None:
    builder = pytest.importorskip("hatchling.builders.wheel", reason="hatchling is not installed").WheelBuilder(
        str(ROOT)
    )

    (wheel,) = builder.build(directory=str(tmp_path), versions=["standard"])

    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (page,) = [name for name in names if name.endswith("escrowctl.1")]
        assert page.endswith(".data/data/share/man/man1/escrowctl.1")
        assert archive.read(page) == PAGE.read_bytes()
        assert {f"escrowctl/topics/{topic}.txt" for topic in TOPICS} <= set(names)
        (licence,) = [name for name in names if name.endswith(".dist-info/licenses/.github/LICENSE")]
        assert archive.read(licence) == (ROOT / ".github" / "LICENSE").read_bytes()
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        assert b"License-Expression: MIT\n" in archive.read(metadata)
