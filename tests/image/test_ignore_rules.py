"""What .dockerignore and .gitignore leave out, as Docker and git see it."""

from __future__ import annotations

import random
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from envlock.image.ignore_rules import (
    Rule,
    find_docker_rule,
    find_git_rule,
    list_parents,
    parse_dockerignore,
    parse_gitignore,
)
from tests.image.bed.session import Bed

STEPS = ["a", "b", "ab", "*", "**", "?", "[ab]", "a*", "*b", "a?", "**b", "[a-c]"]
GIT_STEPS = [*STEPS, "\\a", "[!a]", "[[:alpha:]]", "a**", "***", "[]a]"]


def is_left_out_by_docker(rules: list[Rule], path: str) -> bool:
    rule = find_docker_rule(rules, path)
    return rule is not None and rule.ignores


def is_left_out_by_git(rules: list[Rule], path: str) -> bool:
    for each in [*reversed(list(list_parents(path))), path]:
        rule = find_git_rule(rules, each, is_folder=each != path)
        if rule is not None and rule.ignores:
            return True
    return False


DOCKER = [
    ("data", "data/x/y", True),
    ("data", "src/data", False),
    ("/data", "data/x", True),
    ("data/", "data/x", True),
    ("./data/../data", "data/x", True),
    ("**/data", "src/data/x", True),
    ("*.py", "src/a.py", False),
    ("**/*.py", "a.py", True),
    ("*/b", "a/b/c", True),
    ("a?c", "abc", True),
    ("[^a]", "b", True),
    ("# data", "data", False),
    ("  data  ", "data", True),
    ("a+(b)", "a+(b)", True),
    ("\ufeffdata", "data", True),
    ("../data", "data", False),
]


@pytest.mark.parametrize(("line", "path", "expected"), DOCKER)
def test_a_line_of_docker(line: str, path: str, expected: bool) -> None:
    assert is_left_out_by_docker(parse_dockerignore([line]), path) is expected


def test_the_last_line_of_docker_that_fits_decides() -> None:
    rules = parse_dockerignore(["*", "!src", "src/secret", "!src/secret/public"])
    paths = ["a", "src/a", "src/secret/a", "src/secret/public/a"]
    assert [is_left_out_by_docker(rules, path) for path in paths] == [True, False, True, False]


@pytest.mark.parametrize("line", ["a[b", "!", "a\\"])
def test_a_malformed_line_of_docker(line: str) -> None:
    with pytest.raises(ValueError, match=r"^" + line.replace("\\", r"\\").replace("[", r"\[") + "$"):
        parse_dockerignore([line])


GIT = [
    ("*.h5", "src/deep/m.h5", True),
    ("/m.h5", "src/m.h5", False),
    ("data/", "src/data/x", True),
    ("data/", "data", False),
    ("src/data", "src/data/x", True),
    ("src/data", "x/src/data", False),
    ("a/**/b", "a/b", True),
    ("a/**", "a", False),
    ("\\#a", "#a", True),
    ("a\\ ", "a ", True),
    ("a ", "a", True),
    ("a[b", "a[b", False),
]


@pytest.mark.parametrize(("line", "path", "expected"), GIT)
def test_a_line_of_git(line: str, path: str, expected: bool) -> None:
    assert is_left_out_by_git(parse_gitignore([line]), path) is expected


def test_nothing_below_a_folder_comes_back_in_git() -> None:
    rules = parse_gitignore(["data/", "!data/small.csv", "*.h5", "!keep.h5"])
    paths = ["data/small.csv", "a.h5", "keep.h5"]
    assert [is_left_out_by_git(rules, path) for path in paths] == [True, True, False]


def draw_lines(steps: list[str], chance: random.Random) -> list[str]:
    lines = []
    for _ in range(chance.randint(1, 3)):
        line = "/".join(chance.choices(steps, k=chance.randint(1, 3)))
        line = chance.choice(["", "", "", "!"]) + chance.choice(["", "", "/"]) + line
        lines.append(line + chance.choice(["", "", "", "/"]))
    return lines


def plant(folder: Path) -> list[str]:
    """Make files three folders deep, and return their paths."""
    names = ["a", "b", "ab", "c"]
    paths = [f"{first}/{second}/{third}" for first in names[:3] for second in names for third in names]
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    return paths


@pytest.mark.processes
def test_git_says_the_same(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    paths = plant(tmp_path)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    chance = random.Random(3)
    for _ in range(40):
        lines = draw_lines(GIT_STEPS, chance)
        (tmp_path / ".gitignore").write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = ["git", "-C", str(tmp_path), "ls-files", "-o", "-i", "--exclude-standard", "-z"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        rules = parse_gitignore(lines)
        left_out = {path for path in paths if is_left_out_by_git(rules, path)}
        assert left_out == set(filter(None, listed.split("\0"))) - {".gitignore"}, lines


def test_docker_says_the_same(bed: Bed, tmp_path: Path) -> None:
    paths = plant(tmp_path / "context")
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY . /\n", encoding="ascii")
    chance = random.Random(3)
    for _ in range(12):
        lines = draw_lines(STEPS, chance)
        (tmp_path / "context" / ".dockerignore").write_text("\n".join(lines) + "\n", encoding="utf-8")
        words = ["buildx", "build", "-q", "--output", f"type=tar,dest={tmp_path / 'out.tar'}", "-f"]
        bed.engine.docker(*words, str(tmp_path / "Dockerfile"), str(tmp_path / "context"))
        with tarfile.open(tmp_path / "out.tar") as tar:
            sent = set(tar.getnames())
        rules = parse_dockerignore(lines)
        assert {path for path in paths if is_left_out_by_docker(rules, path)} == set(paths) - sent, lines
