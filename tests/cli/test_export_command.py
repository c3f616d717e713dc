"""`envlock export` as a shell sees it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from envlock.cli.options import list_left_out
from envlock.image.forms import FORMS
from envlock.packages.export_formats import FORMATS
from tests.conftest import Command
from tests.locks import document, encode
from tests.packages.identified import doubt, lock_document, proof, wheel

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

AA = "aa-1.0-py3-none-any.whl"
LEFT_OUT = " 1 package not exported:\n  mine 0.1: it is an editable install\n"


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """Write a lock with a package that is proven and one that is not."""
    path = tmp_path / "envlock.lock"
    identities = {"aa": proof("1.0", wheel(AA, b"content")), "mine": doubt("0.1", "it is an editable install")}
    path.write_bytes(encode(lock_document(identities)))
    return path


@pytest.mark.usefixtures("lock")
def test_stdout_holds_the_file_and_stderr_the_talk(envlock: Command, tmp_path: Path) -> None:
    first, second = envlock("export", "--format", "pylock"), envlock("export", "--format", "pylock", "-o", "-")
    assert (first.returncode, first.stderr, second.stderr) == (1, f"error:{LEFT_OUT}", f"error:{LEFT_OUT}")
    assert first.stdout == second.stdout
    assert [package["name"] for package in tomllib.loads(first.stdout)["packages"]] == ["aa"]
    assert [file.name for file in tmp_path.iterdir()] == ["envlock.lock"]


@pytest.mark.parametrize(("to", "name"), [("pylock", "pylock.gpu.toml"), ("requirements", "requirements.txt")])
@pytest.mark.usefixtures("lock")
def test_a_file_is_the_same_as_stdout(to: str, name: str, envlock: Command, tmp_path: Path) -> None:
    written = envlock("export", "--format", to, "-o", name)
    assert (written.returncode, written.stdout, written.stderr) == (1, "", f"wrote {name}\nerror:{LEFT_OUT}")
    assert (tmp_path / name).read_text(encoding="utf-8") == envlock("export", "--format", to).stdout


def test_many_packages_have_their_thousands_apart(capsys: pytest.CaptureFixture[str]) -> None:
    list_left_out(range(1000), "exported")
    assert capsys.readouterr().err.startswith("error: 1,000 packages not exported:\n  0\n")


def test_all_that_is_there_is_all(envlock: Command, tmp_path: Path) -> None:
    (tmp_path / "envlock.lock").write_bytes(encode(lock_document({"aa": proof("1.0", wheel(AA))})))
    done = envlock("export", "--format", "requirements")
    assert (done.returncode, done.stderr) == (0, "")


def test_what_no_policy_compares_is_listed_in_the_file_alone(envlock: Command, tmp_path: Path) -> None:
    lock = lock_document({"pip": doubt("24.0", "it is the distribution's own build")})
    (tmp_path / "envlock.lock").write_bytes(encode(lock))
    done = envlock("export", "--format", "requirements")
    assert (done.returncode, done.stderr) == (0, "")
    assert "# Left out because no policy compares them, 1 of 1:\n#   pip 24.0: it is" in done.stdout


@pytest.mark.parametrize("output", ["locks/pylock.toml", None])
@pytest.mark.usefixtures("lock")
def test_paths_are_as_seen_from_the_file(output: str | None, envlock: Command, tmp_path: Path) -> None:
    for folder in ("locks", "wheels"):
        (tmp_path / folder).mkdir()
    (tmp_path / "wheels" / AA).write_bytes(b"content")
    done = envlock("export", "--format", "pylock", "--wheelhouse", "wheels", "-o", output or "-")
    text = done.stdout if output is None else (tmp_path / output).read_text(encoding="utf-8")
    (package,) = tomllib.loads(text)["packages"]
    assert package["wheels"][0]["path"] == f"{'' if output is None else '../'}wheels/{AA}"


@pytest.mark.parametrize(
    ("args", "code", "stderr"),
    [
        (
            ["--format", "conda"],
            2,
            f"error: unknown format `conda`\nhint: choose from: {', '.join((*FORMATS, *FORMS))}\n",
        ),
        (
            ["--format", "pylock", "-o", "lock.toml"],
            2,
            "error: installers do not accept the name lock.toml for this format\n"
            "hint: name it pylock.toml or pylock.NAME.toml\n",
        ),
        (
            ["--format", "pylock", "-o", "pylock.a.b.toml"],
            2,
            "error: installers do not accept the name pylock.a.b.toml for this format\n"
            "hint: name it pylock.toml or pylock.NAME.toml\n",
        ),
        (
            ["--format", "requirements", "--wheelhouse", "my wheels"],
            2,
            "error: the path 'my wheels' cannot be written in this format\nhint: use a folder with a plain name\n",
        ),
        (
            ["--format", "pylock", "--wheelhouse", "my\nwheels"],
            2,
            "error: the path 'my\\nwheels' cannot be written in this format\nhint: use a folder with a plain name\n",
        ),
        (
            ["--format", "requirements", "-o", "no/such/folder.txt"],
            6,
            "error: cannot write file no/such/folder.txt: No such file or directory\n"
            "hint: create the folder first: no/such\n",
        ),
    ],
)
@pytest.mark.usefixtures("lock")
def test_wrong_use_is_one_sentence_and_a_hint(
    args: list[str], code: int, stderr: str, envlock: Command, tmp_path: Path
) -> None:
    for folder in ("my wheels", "my\nwheels"):
        (tmp_path / folder).mkdir()
    done = envlock("export", *args)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", stderr)


@pytest.mark.parametrize("options", [[], ["--wheelhouse", "wheelhouse"]])
def test_a_lock_that_proves_nothing_is_refused(options: list[str], envlock: Command, tmp_path: Path) -> None:
    (tmp_path / "envlock.lock").write_bytes(encode(document(unavailable={})))
    done = envlock("export", *options, environ={"XDG_CACHE_HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull})
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "error: lockfile envlock.lock does not name the wheels of its packages\n"
        "hint: run `envlock capture --hashes` where they are installed; "
        "`envlock sync` and `envlock export --format requirements --no-hashes` need no hashes\n",
    )


def test_a_lock_with_identities_of_other_packages_is_refused(lock: Path, envlock: Command) -> None:
    text = lock.read_text(encoding="utf-8")
    lock.write_text(text.replace('"version": "1.0"', '"version": "1.1"', 1), encoding="utf-8")
    done = envlock("export", "--format", "requirements")
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "error: lockfile envlock.lock: the recorded wheel of aa is for another version\n"
        "hint: run `envlock capture --hashes` again\n",
    )


def test_a_hostile_lock_breaks_out_of_no_comment(envlock: Command, tmp_path: Path) -> None:
    reason = "x\xa0evil==1 --hash=sha256:" + "0" * 64 + "\\"
    (tmp_path / "envlock.lock").write_bytes(encode(lock_document({"mine": doubt("0.1", reason)})))
    for to in ("requirements", "pylock"):
        done = envlock("export", "--format", to)
        assert done.returncode == 1
        assert (done.stdout + done.stderr).replace("\n", "").isprintable()
        assert [line for line in done.stdout.splitlines() if line.startswith(("evil", "\x85"))] == []


def test_a_bill_of_materials_reads_no_wheelhouse(envlock: Command, tmp_path: Path) -> None:
    (tmp_path / "envlock.lock").write_bytes(encode(lock_document({"aa": proof("1.0", wheel(AA))})))
    done = envlock("export", "--format", "slsa", "--wheelhouse", "wheels")
    assert (done.returncode, done.stderr) == (
        2,
        "error: `--format slsa` reads no wheelhouse\nhint: leave out `--wheelhouse`\n",
    )


def test_versions_are_exported_without_any_proof(envlock: Command, tmp_path: Path) -> None:
    origin = {"url": "file:", "editable": True}
    packages = {"aa": {"version": "1.0"}, "bb": {"version": "2.0", "origin": origin}}
    lock = document(unavailable={}, facts={**document()["facts"], "packages": packages})
    (tmp_path / "envlock.lock").write_bytes(encode(lock))
    done = envlock("export", "--format", "requirements", "--no-hashes")
    assert done.returncode == 1
    assert done.stderr.startswith("error: 1 package not exported:\n  bb 2.0: it was installed from a folder or a file")
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["aa==1.0"]
    assert lines[0] == "# Written by `envlock export --no-hashes`: the packages of an environment without proofs."
    done = envlock("export", "--format", "pylock", "--no-hashes")
    assert (done.returncode, done.stdout) == (2, "")
