"""A mounted tmpfs: small enough to be filled to any level, and read-only on request."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

_SIZE = 1024 * 1024


class Disk:
    """A mounted tmpfs. Its space is counted in pages of 4 KiB."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self, *, leave: int) -> None:
        """Leave that many bytes of space."""
        available = os.statvfs(self.path)
        with self._filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, available.f_bavail * available.f_frsize - leave)

    def make_room(self) -> None:
        self._filler.unlink()

    def clear(self) -> None:
        for path in self.path.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    @contextlib.contextmanager
    def read_only(self) -> Iterator[None]:
        """Refuse every change for the length of the block."""
        _mount("-o", "remount,ro", str(self.path))
        try:
            yield
        finally:
            _mount("-o", "remount,rw", str(self.path))


@contextlib.contextmanager
def small_disk(path: Path) -> Iterator[Disk]:
    """Mount a disk; skips the test where this user may not."""
    path.mkdir()
    try:
        _mount("-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", str(path))
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs to mount a small tmpfs, which takes root: {error}")
    try:
        yield Disk(path)
    finally:
        subprocess.run(["umount", str(path)], check=True)


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True, capture_output=True)
