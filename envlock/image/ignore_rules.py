"""Which files of a project .dockerignore, .gitignore or the setting `exclude` leaves out. Pure.

The two dialects share their wildcards and differ in everything else:

- `.dockerignore` (and `exclude`): a pattern is anchored at the top folder; the last one that fits a
  path or a folder above it decides, so `!` brings back a file of a folder that is left out.
  https://docs.docker.com/build/concepts/context/#dockerignore-files
- `.gitignore`: a pattern without a slash fits at any depth; each folder can have a file of its own;
  nothing below a folder that is left out comes back. https://git-scm.com/docs/gitignore
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """A line: the paths that it fits, and whether it leaves them out or brings them back.

    `text` is the line; `for_folders` is True if it fits folders only.
    """

    text: str
    pattern: re.Pattern[str]
    ignores: bool
    for_folders: bool = False


def parse_dockerignore(lines: Iterable[str]) -> list[Rule]:
    """Return the rules of a .dockerignore.

    Raises:
        ValueError: a pattern is malformed; the message is the line.
    """
    rules = []
    for number, line in enumerate(lines):
        if number == 0:
            line = line.removeprefix("\ufeff")
        text = line.strip()
        if not text or line.startswith("#"):
            continue
        ignores = not text.startswith("!")
        name = text.removeprefix("!").strip()
        if not name:
            raise ValueError(text)
        name = posixpath.normpath(name)
        # A path that is not below the top folder fits nothing; `/` alone is the folder itself.
        name = name.lstrip("/") or "."
        rules.append(Rule(text, _compile(name, text), ignores))
    return rules


def parse_gitignore(lines: Iterable[str]) -> list[Rule]:
    """Return the rules of a .gitignore; its malformed lines fit nothing, as for git."""
    rules = []
    for number, line in enumerate(lines):
        if number == 0:
            line = line.removeprefix("\ufeff")
        text = line.rstrip("\r\n")
        # A blank at the end counts only after a backslash.
        while text.endswith(" ") and not text.endswith("\\ "):
            text = text[:-1]
        if not text or text.startswith("#"):
            continue
        ignores = not text.startswith("!")
        name = text.removeprefix("!")
        for_folders = name.endswith("/")
        name = name.removesuffix("/")
        if not name:
            continue
        if "/" in name:
            name = name.removeprefix("/")
        else:
            name = f"**/{name}"
        try:
            rules.append(Rule(text, _compile(name, text, is_git=True), ignores, for_folders))
        except ValueError:
            continue
    return rules


def find_docker_rule(rules: Iterable[Rule], path: str) -> Rule | None:
    """Return the rule of a .dockerignore that decides on a path; None if none fits."""
    last = None
    paths = [path, *list_parents(path)]
    for rule in rules:
        if any(rule.pattern.fullmatch(each) for each in paths):
            last = rule
    return last


def find_git_rule(rules: Iterable[Rule], path: str, *, is_folder: bool) -> Rule | None:
    """Return the rule of a .gitignore that decides on a path below its folder; None if none fits.

    The folders above the path are asked for before it: one that is left out ends the search.
    """
    last = None
    for rule in rules:
        if rule.pattern.fullmatch(path) and (is_folder or not rule.for_folders):
            last = rule
    return last


def list_parents(path: str) -> Iterator[str]:
    """Yield the folders above a path, the nearest first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _compile(pattern: str, text: str, *, is_git: bool = False) -> re.Pattern[str]:
    """Return the paths that a pattern fits; ValueError with the line if it is malformed."""
    parts: list[str] = []
    place = 0
    while place < len(pattern):
        letter = pattern[place]
        if letter == "*":
            stars = len(pattern) - place - len(pattern[place:].lstrip("*"))
            before, after = pattern[place - 1 : place], pattern[place + stars : place + stars + 1]
            place += stars
            # For git, two stars span folders only if they are a whole step of the path; it compares
            # what stands before the first wildcard apart, and takes what follows for a beginning.
            begins = before == "/" or not re.search(r"[*?\[\\]", pattern[: place - stars])
            is_step = begins and after in ("", "/")
            if stars == 1 or (is_git and not is_step):
                parts.append("[^/]*")
            elif after == "":
                parts.append(".+" if is_git and before == "/" else ".*")
            else:
                parts.append("(?:.*/)?")
                place += after == "/"
        elif letter == "?":
            parts.append("[^/]")
            place += 1
        elif letter == "[":
            part, place = _translate_class(pattern, place, text, is_git=is_git)
            parts.append(part)
        elif letter == "\\":
            if place + 1 == len(pattern):
                raise ValueError(text)
            parts.append(re.escape(pattern[place + 1]))
            place += 2
        else:
            parts.append(re.escape(letter))
            place += 1
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error:
        raise ValueError(text) from None


_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t\n\r\f\v",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


def _translate_class(pattern: str, start: int, text: str, *, is_git: bool) -> tuple[str, int]:
    """Return a character class such as `[^a-z]` for `re`, and the place after it."""
    place = start + 1
    # Docker knows `[^a]` only, which is Go's.
    is_negated = pattern[place : place + 1] in (("^", "!") if is_git else ("^",))
    place += is_negated
    members: list[str] = []
    first = place
    while True:
        letter = pattern[place : place + 1]
        if letter == "":
            raise ValueError(text)
        if letter == "]" and place > first:
            break
        named = re.compile(r"\[:([a-z]+):\]").match(pattern, place)
        if named and named[1] in _CLASSES:
            members.append(_CLASSES[named[1]])
            place = named.end()
            continue
        if letter == "\\":
            place += 1
            letter = pattern[place : place + 1]
            if letter == "":
                raise ValueError(text)
            members.append(re.escape(letter))
        elif letter == "-":
            members.append(
                "-" if len(members) > 0 and pattern[place + 1 : place + 2] != "]" else r"\-"
            )
        else:
            members.append(re.escape(letter))
        place += 1
    # No class fits a slash.
    return f"(?!/)[{'^' * is_negated}{''.join(members)}]", place + 1
