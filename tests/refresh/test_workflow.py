"""The weekly workflow, step by step: a clone, a remote, and a `gh` that writes down what it is asked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.packages.file_server import files
from tests.packages.web.hostile import Reply, always, answer
from tests.refresh.test_refresh import IMAGES, PLACES, PRODUCTS, RECORDED, ROOT, rows

pytestmark = [pytest.mark.network, pytest.mark.processes]

JOBS: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / ".github/workflows/refresh.yml").read_text(encoding="utf-8"))[
    "jobs"
]
LAST = next(
    row["last"]
    for row in rows(ROOT / "envlock" / "data", "python_images", "slim")
    if (row["python"], row["suite"]) == ("3.13", "trixie")
)
GH = """#!/bin/sh
echo "$@" >> "$GH_LOG"
if [ "$1 $2" = "pr list" ]; then cat "$GH_OPEN"; fi
for last; do :; done
case "$1 $2" in "pr create" | "pr edit") cp "$last" "$GH_LOG.text";; esac
"""
PYTHON = """#!/bin/sh
if [ "$2" = pytest ]; then echo "FAILED tests/data/test_x.py::test_missing"; echo "1 failed"; exit 1; fi
exec {python} "$@"
"""


def git(*words: str | Path, folder: Path) -> str:
    named = ("-c", "user.name=a", "-c", "user.email=a@b")
    return subprocess.run(["git", *named, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bare repository with what stands here."""
    folder = tmp_path_factory.mktemp("remote")
    tree, bare = folder / "tree", folder / "remote.git"
    for name in git("ls-files", "-z", "--cached", "--others", "--exclude-standard", folder=ROOT).split("\0"):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name, follow_symlinks=False)
    git("init", "--quiet", "--initial-branch=main", folder=tree)
    git("add", "--all", folder=tree)
    git("commit", "--quiet", "--message", "all", folder=tree)
    git("clone", "--quiet", "--bare", tree, bare, folder=folder)
    return bare


class Runner:
    """What GitHub does with a job: each step in a shell of its own, the first red one ends it."""

    def __init__(self, folder: Path, remote: Path) -> None:
        self.folder, self.remote, self.artifact = folder, remote, folder / "artifact"
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "gh").write_text(GH)
        (folder / "bin" / "gh").chmod(0o755)
        (folder / "open").touch()
        self.environ = {
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "GH_LOG": str(folder / "gh"),
            "GH_OPEN": str(folder / "open"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        }

    def run(self, job: str, **environ: str) -> tuple[str, int]:
        """Return the name of the last step that ran, and its exit code."""
        place = self.folder / f"{job}-{len(list(self.folder.iterdir()))}"
        name = ""
        shell = "sh" if "container" in JOBS[job] else "bash"  # GitHub's defaults
        for step in JOBS[job]["steps"]:
            name = step.get("name", step.get("run", step.get("uses")))
            action, _, _ = step.get("uses", "").partition("@")
            if action == "actions/checkout":
                git("clone", "--quiet", self.remote, place, folder=self.folder)
                python = place / ".venvs" / "dev" / "bin" / "python"
                python.parent.mkdir(parents=True)
                python.write_text(PYTHON.format(python=sys.executable))
                python.chmod(0o755)
                (place / ".venvs" / "dev" / ".ready").touch()
            elif action == "actions/upload-artifact":
                shutil.rmtree(self.artifact, ignore_errors=True)
                shutil.copytree(place / step["with"]["path"], self.artifact)
            elif action == "actions/download-artifact":
                shutil.copytree(self.artifact, place / step["with"]["path"])
            else:
                assert action == ""
                done = subprocess.run(
                    [shell, "-e", "-c", step["run"]],
                    cwd=place,
                    env=self.environ | environ,
                    capture_output=True,
                    text=True,
                    timeout=300,
                    check=False,
                )
                if done.returncode != 0:
                    return name, done.returncode
        return name, 0

    def asked(self) -> list[str]:
        """Return what `gh` was asked, by line."""
        log = self.folder / "gh"
        return log.read_text(encoding="utf-8").splitlines() if log.exists() else []

    def text(self) -> str:
        """Return the text of the pull request."""
        return (self.folder / "gh.text").read_text(encoding="utf-8")


@contextmanager
def sources(tables: str, odd: dict[str, Reply] | None = None) -> Iterator[dict[str, str]]:
    """Serve the recorded lists, with one more patch release of Python 3.13, and a Debian that no table knows."""
    contents = {path: (RECORDED / name).read_bytes() for path, name in PLACES.items()}
    contents[IMAGES] += f"\nTags: 3.13.{LAST + 1}-slim-trixie, 3.14.9-slim-forky\n".encode()
    with files(contents, odd) as server:
        yield {"TABLE": tables, "ENVLOCK_REFRESH_MIRROR": server.url()}


def test_what_the_sources_say_becomes_one_pull_request(tmp_path: Path, remote: Path) -> None:
    runner = Runner(tmp_path / "runner", remote)
    with sources("slim") as environ:
        assert runner.run("ask", **environ) == (JOBS["ask"]["steps"][-1]["uses"], 0)
    patch = (runner.artifact / "tables.patch").read_text(encoding="utf-8")
    (runner.artifact / "tables.patch").write_text(
        patch + "diff --git a/Makefile b/Makefile\n--- a/Makefile\n+++ b/Makefile\n@@ -0,0 +1 @@\n+evil:\n",
        encoding="utf-8",
    )
    assert runner.run("propose") == (JOBS["propose"]["steps"][-1]["name"], 0)
    changed = git("diff", "--name-only", "main", "refresh", folder=remote).split()
    assert "envlock/data/python_images.toml" in changed
    assert [name for name in changed if not name.startswith(("envlock/", "docs/", "tests/image/bases/golden/"))] == []
    title = "--title Refresh the tables: new or longer rows: 1 --body-file answers/text.md"
    assert runner.asked() == [
        "auth setup-git",
        "pr list --head refresh --state open --json number --jq .[].number",
        f"pr create --head refresh {title}",
    ]
    text = runner.text()
    assert f"\n  - slim 3.13 trixie: last {LAST} -> last {LAST + 1}\n" in text
    for head in ("For a person to decide", "Missing, by the tests of tables", "Ages"):
        assert text.count(f"\n## {head}\n\n") == 1
    assert "FAILED tests/data/test_x.py::test_missing\n" in text
    assert text in (runner.folder / "summary").read_text(encoding="utf-8")

    # A week later the pull request is still open, and one of the sources does not answer.
    (runner.folder / "open").write_text("7\n")
    with sources("slim cards", {PRODUCTS: always(answer(b"", "500 Internal Server Error"))}) as environ:
        assert runner.run("ask", **environ)[1] == 0
    red = JOBS["propose"]["steps"][-1]["name"]
    assert red.startswith("Red where a source did not answer")
    assert runner.run("propose") == (red, 1)
    assert runner.asked()[-1] == f"pr edit 7 {title}"
    assert "\n## Not as a source says, or not answered\n\n- cards: " in runner.text()


def test_nothing_new_opens_nothing(tmp_path: Path, remote: Path) -> None:
    runner = Runner(tmp_path / "runner", remote)
    runner.artifact.mkdir()
    (runner.artifact / "summary.md").write_text("nothing\n")
    (runner.artifact / "tables.patch").touch()
    before = git("for-each-ref", folder=remote)
    assert runner.run("propose")[1] == 0
    assert (runner.asked(), git("for-each-ref", folder=remote)) == ([], before)
