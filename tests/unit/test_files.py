"""Creating and replacing files: private under any umask, never through what exists already."""

import os
import resource
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from escrowctl import files
from escrowctl.errors import EscrowctlError


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:  # the folder comes first
    before = os.umask(request.param)
    yield
    os.umask(before)


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.mark.usefixtures("umask")
def test_new_file_has_its_mode_whatever_the_umask(tmp_path: Path) -> None:
    os.close(files.create_file(tmp_path / "created"))
    files.create_empty_file(tmp_path / "made")
    files.write_durably(tmp_path / "durable", b"x")
    files.replace_quickly(tmp_path / "replaced", b"x")
    files.replace_quickly(tmp_path / "script", b"x", 0o644)

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(("created", "made", "durable", "replaced"), 0o600) | {"script": 0o644}


@pytest.mark.parametrize("kind", ["file", "link", "dangling link"])
def test_new_file_is_never_written_through_what_exists(tmp_path: Path, kind: str) -> None:
    precious, place = tmp_path / "precious", tmp_path / "place"
    precious.write_text("do not overwrite")
    if kind == "file":
        place.write_text("do not overwrite")
    else:
        place.symlink_to(precious if kind == "link" else tmp_path / "nowhere")

    with pytest.raises(FileExistsError):
        files.write_durably(place, b"new")

    files.create_empty_file(place)
    assert precious.read_text() == "do not overwrite"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("write", [files.write_durably, files.replace_quickly])
def test_full_disk_leaves_no_part_of_a_file(tmp_path: Path, write: Callable[[Path, bytes], None]) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            write(tmp_path / "secret.json", b"whsec_1")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert names(tmp_path) == []


def test_replaced_link_leaves_its_target_alone(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)

    files.replace_quickly(link, b"new")

    assert (target.read_text(), link.is_symlink(), link.read_bytes()) == ("old", False, b"new")


@pytest.mark.parametrize(("private", "mode"), [(True, 0o600), (False, 0o640)])
def test_replaced_file_keeps_its_mode_unless_private(tmp_path: Path, *, private: bool, mode: int) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o640)
    (tmp_path / ".file.new").write_text("left by a killed process")

    files.replace_durably(path, "new", private=private)

    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode), names(tmp_path)) == ("new", mode, ["file"])


def test_replacement_that_fails_leaves_the_file_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    path = tmp_path / "file"
    path.write_text("old")
    monkeypatch.setattr(Path, "replace", fail)

    with pytest.raises(EscrowctlError):
        files.replace_durably(path, "new")

    assert (path.read_text(), names(tmp_path)) == ("old", ["file"])
