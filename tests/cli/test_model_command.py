"""`envlock show MODEL` and `envlock diff MODEL live`, as a shell sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

import envlock as facade
from tests.conftest import Command
from tests.image.plans import lock, without
from tests.locks import document, encode
from tests.runtime.test_citation import GOLDEN
from tests.runtime.test_stamp import keras


@pytest.fixture
def model(envlock: Command) -> Path:
    (envlock.folder / "made.lock").write_bytes(encode(document()))
    path = keras(envlock.folder / "model.keras")
    facade.stamp(path, envlock.folder / "made.lock")
    return path


def test_show_prints_what_made_the_model(envlock: Command, model: Path) -> None:
    for options in ([], ["--format", "json"], ["--line"], ["--summary"]):
        shown = envlock("show", "model.keras", *options)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert shown.stdout == envlock("show", "made.lock", *options).stdout


def test_diff_compares_a_model_with_lockfiles_and_models(envlock: Command, model: Path) -> None:
    same = envlock("diff", "model.keras", "made.lock")
    assert (same.returncode, same.stderr) == (0, "")
    assert same.stdout == "matches under policy strict\n"
    other = document(facts={**document()["facts"], "python": {"implementation": "cpython", "version": "3.12.1"}})
    (envlock.folder / "other.lock").write_bytes(encode(other))
    done = envlock("diff", "model.keras", "other.lock")
    assert (done.returncode, done.stdout.splitlines()[1]) == (
        1,
        "  x python.version: model.keras 3.11.7, other.lock 3.12.1",
    )


def test_a_model_of_this_environment_matches_live(envlock: Command, model: Path) -> None:
    (envlock.folder / "live.lock").write_text(envlock("capture", "-o", "-").stdout, encoding="utf-8")
    facade.stamp(model, envlock.folder / "live.lock")
    done = envlock("diff", "model.keras", "live")
    assert (done.returncode, done.stdout, done.stderr) == (0, "matches under policy strict\n", "")
    changed = envlock("diff", "model.keras", "live", environ={"TF_ENABLE_ONEDNN_OPTS": "0"})
    assert changed.returncode == 1
    assert "  x environ.TF_ENABLE_ONEDNN_OPTS: model.keras unset, live 0" in changed.stdout.splitlines()


def test_a_line_alone_can_be_shown_and_not_be_compared(envlock: Command, model: Path) -> None:
    facade.stamp(model, envlock.folder / "made.lock", whole=False)
    assert envlock("show", "model.keras", "--line").stdout == f"{GOLDEN}\n"
    for words in (["show", "model.keras"], ["diff", "model.keras", "made.lock"]):
        done = envlock(*words)
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr == (
            f"error: model model.keras was stamped with a line only: {GOLDEN}\n"
            "hint: compare the line with that of `envlock show LOCK --line`\n"
        )


def test_a_build_has_the_lockfile_of_the_model_and_leaves_the_model_alone(envlock: Command, model: Path) -> None:
    (envlock.folder / "made.lock").write_bytes(encode(without(lock(), "mine")))
    facade.stamp(model, envlock.folder / "made.lock")
    before = model.read_bytes()
    done = envlock("build", "model.keras", "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nFROM " in done.stdout
    assert done.stdout == envlock("build", "made.lock", "--dry-run").stdout
    assert model.read_bytes() == before


@pytest.mark.parametrize("stamped", ["with a line only", "not at all"])
def test_no_environment_is_made_up_for_a_model_that_has_none(envlock: Command, model: Path, stamped: str) -> None:
    if stamped == "not at all":
        keras(model)
    else:
        facade.stamp(model, envlock.folder / "made.lock", whole=False)
    done = envlock("build", "model.keras", "--dry-run")
    assert (done.returncode, done.stdout) == (3, "")
    assert "model.keras" in done.stderr


def test_what_would_write_a_lockfile_takes_no_model(envlock: Command, model: Path) -> None:
    """A model is read by the commands that leave it as it is: no lockfile replaces it."""
    before = model.read_bytes()
    done = envlock("ignore", "cpu.quota", "--reason", "x", "--lock", "model.keras")
    assert done.returncode == 3
    assert model.read_bytes() == before
