"""The files of a project that name what is left out: .dockerignore, .gitignore, and `exclude`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from envlock.image.ignore_rules import (
    Rule,
    find_docker_rule,
    find_git_rule,
    list_parents,
    parse_dockerignore,
    parse_gitignore,
)
from envlock.runtime.errors import UsageError
from envlock.runtime.report import clean

DOCKERIGNORE, GITIGNORE, EXCLUDE = ".dockerignore", ".gitignore", "`exclude`"


class IgnoreFiles:
    """The rules of a project: its .dockerignore, else the .gitignore of each folder; `exclude`.

    `left_out` has the name of the rules that have left out a file or a folder.
    """

    def __init__(self, project: Path, exclude: Sequence[str]) -> None:
        self.left_out: dict[str, str] = {}
        self._project = project
        self._exclude = _parse(exclude, EXCLUDE)
        self._docker: list[Rule] | None = None
        if (project / DOCKERIGNORE).is_file():
            self._docker = _parse(_read_lines(project / DOCKERIGNORE), DOCKERIGNORE)
        self._git: dict[str, list[Rule]] = {}

    def is_left_out(self, path: Path, start: Path, *, is_folder: bool = False) -> bool:
        """Return whether rules leave out a path below the folder `start`.

        A folder of which a file can come back is not left out itself.
        """
        name = path.relative_to(self._project).as_posix()
        top = "" if start == self._project else start.relative_to(self._project).as_posix()
        rules = self._find(name, top, is_folder=is_folder)
        if rules is None:
            return False
        # Of a folder that is left out, its files are not named again.
        if not any(above in self.left_out for above in list_parents(name)):
            self.left_out[name] = rules
        return not (is_folder and self._can_come_back(rules))

    def _find(self, path: str, start: str, *, is_folder: bool) -> str | None:
        """Return the name of the rules that leave out a path, or None."""
        # What the settings name themselves is wanted, so rules count only below it.
        below = path[len(start) + 1 :] if start else path
        if _is_left_out(self._exclude, path, below):
            return EXCLUDE
        if self._docker is not None:
            return DOCKERIGNORE if _is_left_out(self._docker, path, below) else None
        rule = None
        for folder in ["", *reversed(list(list_parents(path)))]:
            inner = path[len(folder) + 1 :] if folder else path
            found = find_git_rule(self._load_git(folder), inner, is_folder=is_folder)
            # The file in the nearest folder decides.
            rule = found or rule
        return GITIGNORE if rule is not None and rule.ignores else None

    def _can_come_back(self, by: str) -> bool:
        """Return whether files below a folder that these rules leave out can come back."""
        rules = {EXCLUDE: self._exclude, DOCKERIGNORE: self._docker or []}.get(by, [])
        return any(not rule.ignores for rule in rules)

    def _load_git(self, folder: str) -> list[Rule]:
        if folder not in self._git:
            file = self._project / folder / GITIGNORE
            lines = _read_lines(file) if file.is_file() else []
            self._git[folder] = parse_gitignore(lines)
        return self._git[folder]


def _is_left_out(rules: Sequence[Rule], path: str, below: str) -> bool:
    """Return whether rules of Docker's leave out a path, of which `below` is below the named folder."""
    above = path[: len(path) - len(below)].rstrip("/")
    kept = [rule for rule in rules if find_docker_rule([rule], above) is None] if above else rules
    rule = find_docker_rule(kept, path)
    return rule is not None and rule.ignores


def _parse(lines: Sequence[str], where: str) -> list[Rule]:
    try:
        return parse_dockerignore(lines)
    except ValueError as error:
        raise UsageError(
            f"{where} has a malformed pattern: {clean(str(error))}",
            hint="write it like `data/**` or `!data/small.csv`",
        ) from None


def _read_lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError as error:
        raise UsageError(
            f"cannot read {file}: {error.strerror}", hint="correct its permissions"
        ) from None
