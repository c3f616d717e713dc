"""A copy of a real environment that costs nothing and harms nobody, and random damage to it.

The copy has folders of its own and a link for each file, so damage replaces a link by a damaged copy of what it led to:
the environment itself, which other tests use at the same time, is only ever read.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from envlock.packages.file_verification import survey, verify_files
from envlock.packages.installation import Installation, find_installation
from envlock.runtime.files.survey import Survey
from envlock.runtime.report import INFO, Finding

WRONG_MODES = (0o000, 0o200, 0o400, 0o600, 0o640, 0o666, 0o777, 0o744, 0o654, 0o4755, 0o2644, 0o1644)
"""None of them is what 0644 or 0755 becomes in an installer's hands; which x a wheel has given is not told."""


class Copy:
    """A prefix with folders of its own, whose files are links into the environment of an interpreter."""

    def __init__(self, python: Path, folder: Path) -> None:
        self.python = python
        original = find_installation(python)
        (site,) = [each for each in original.folders if each.name == "site-packages"]
        self.prefix = folder / "prefix"
        self.site = self.prefix / site.relative_to(original.prefix.resolve())
        for part in (site, original.prefix / "bin"):
            self._link(part, self.prefix / part.resolve().relative_to(original.prefix.resolve()))

    def survey(self) -> Survey:
        """Return what there is to verify."""
        return survey(Installation(self.prefix, (self.site,)))

    def wrong(self) -> list[Finding]:
        """Verify it; return the findings that are no mere information."""
        return [each for each in verify_files(self.survey(), self.python, {}) if each.severity != INFO]

    def _link(self, source: Path, target: Path) -> None:
        for folder, _, names in os.walk(source):
            there = target / Path(folder).relative_to(source)
            there.mkdir(parents=True, exist_ok=True)
            for name in names:
                (there / name).symlink_to(Path(folder, name))


class Damage:
    """Some random things done to a copy; `named` are the paths that must be found, `undo` takes all of it back."""

    def __init__(self, copy: Copy, rng: random.Random) -> None:
        self.copy = copy
        self.rng = rng
        self.named: dict[str, str] = {}
        self._undo: list[Callable[[], object]] = []
        claims = copy.survey().claims
        self._files = sorted(path for path, rows in claims.items() if any(row.hash for row in rows))
        rng.shuffle(self._files)

    def do(self, count: int) -> None:
        """Do that many things, each to other files."""
        for number in range(count):
            kind = ("flip", "truncate", "extend", "delete", "swap", "chmod", "add")[number % 7]
            getattr(self, f"_{kind}")()

    def undo(self) -> None:
        """Make everything as it was."""
        while self._undo:
            self._undo.pop()()
        self.named.clear()

    def take(self, pattern: str = "", *, empty: bool = False) -> Path:
        """Return a file that nothing was done to, as a copy of its own that can be damaged."""
        index = next(
            index for index, name in enumerate(self._files) if pattern in name and (empty or Path(name).stat().st_size)
        )
        path = Path(self._files.pop(index))
        original = path.resolve()
        path.unlink()
        shutil.copy2(original, path)
        self._undo.append(lambda: _link_again(path, original))
        return path

    def flip(self, path: Path) -> None:
        """Change one bit or more of one byte."""
        with path.open("r+b") as file:
            place = self.rng.randrange(path.stat().st_size)
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ self.rng.randint(1, 255)]))
        self._name(path, "flip")

    def _flip(self) -> None:
        self.flip(self.take())

    def _truncate(self) -> None:
        path = self.take()
        os.truncate(path, self.rng.randrange(path.stat().st_size))
        self._name(path, "truncate")

    def _extend(self) -> None:
        path = self.take(empty=True)
        with path.open("ab") as file:
            file.write(self.rng.randbytes(self.rng.randint(1, 5000)))
        self._name(path, "extend")

    def _delete(self) -> None:
        path = self.take(empty=True)
        path.unlink()
        self._name(path, "delete")

    def _swap(self) -> None:
        one, two = self.take(), self.take()
        while one.read_bytes() == two.read_bytes():
            two = self.take()
        first, second = one.read_bytes(), two.read_bytes()
        one.write_bytes(second)
        two.write_bytes(first)
        self._name(one, "swap")
        self._name(two, "swap")

    def _chmod(self) -> None:
        path = self.take(empty=True)
        mode = self.rng.choice([mode for mode in WRONG_MODES if mode != path.stat().st_mode & 0o7777])
        path.chmod(mode)
        self._name(path, f"chmod {mode:o}")

    def _add(self) -> None:
        inside = Path(self.rng.choice([name for name in self._files if name.startswith(f"{self.copy.site}/")])).parent
        folder = self.rng.choice([inside, self.copy.site])
        path = (
            folder / f"added-{self.rng.randrange(10**9)}{self.rng.choice(['.py', '.so', '.pth', '.pyc', '.txt', ''])}"
        )
        is_folder = self.rng.random() < 0.3
        (path.mkdir() if is_folder else path.touch())
        for number in range(3 if is_folder else 0):
            (path / f"{number}.py").touch()
        self._undo.append(lambda: shutil.rmtree(path) if path.is_dir() else path.unlink())
        self._name(path, "add")

    def _name(self, path: Path, kind: str) -> None:
        text = str(path)
        inside = text.startswith(f"{self.copy.site}/")
        name = text[len(str(self.copy.site)) + 1 :] if inside else f"../../../{path.relative_to(self.copy.prefix)}"
        self.named[name] = kind


def _link_again(path: Path, original: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(original)


KINDS = {
    "flip": "modified",
    "truncate": "modified",
    "extend": "modified",
    "swap": "modified",
    "delete": "missing",
    "chmod": "permission",
}


def fits(kind: str, finding: Finding) -> bool:
    """Return whether a finding calls the damage what it is."""
    called = finding.rule.removeprefix("file-")
    if kind == "add":
        return called in ("foreign", "startup", "bytecode")
    return called == KINDS[kind.partition(" ")[0]]
