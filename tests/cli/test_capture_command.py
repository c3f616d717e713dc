"""`envlock capture` and `envlock show` as a shell sees them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from envlock.runtime.compare import TAKE_AWAY
from tests.conftest import Command
from tests.machines import distribution

MAKE = "create one with `envlock capture`, or name one: `envlock verify path/to/envlock.lock`"
RESTORE = "restore it from version control, or create it again with `envlock capture`"


def test_capture_then_show_then_check(envlock: Command) -> None:
    done = envlock("capture")
    assert (done.returncode, done.stdout) == (0, "")
    written = (envlock.folder / "envlock.lock").read_text(encoding="utf-8")
    count = len(json.loads(written)["facts"]["packages"])
    assert done.stderr == f"wrote envlock.lock: {count} packages, policy strict\n"

    shown = envlock("show", "--format", "json", stdin=b"ignored")
    assert (shown.returncode, shown.stdout.rstrip("\n"), shown.stderr) == (0, written.rstrip("\n"), "")

    check = envlock("capture", "--check")
    path = envlock.folder / "envlock.lock"
    assert (check.returncode, check.stdout, check.stderr) == (0, "", "envlock.lock is up to date\n")
    assert path.read_text(encoding="utf-8") == written


def test_capture_to_stdout_writes_no_file_and_gives_the_same_bytes_twice(envlock: Command, tmp_path: Path) -> None:
    first, second = (envlock("capture", "-o", "-", environ={"PYTHONHASHSEED": seed}) for seed in ("", "random"))
    assert (first.returncode, first.stderr, list(tmp_path.iterdir())) == (0, "", [])
    assert first.stdout == second.stdout
    assert json.loads(first.stdout)["lock_version"] == 1
    assert (first.stdout[:2], first.stdout[-3:]) == ("{\n", "\n}\n")


def test_the_hash_seed_is_a_fact_and_held_where_the_lockfile_has_one(envlock: Command, tmp_path: Path) -> None:
    """Sets of strings have another order under another seed, and with them classes that are listed through one."""
    for seed, locked in (("7", "7"), ("random", None)):
        envlock("capture", "-q", environ={"PYTHONHASHSEED": seed})
        assert json.loads((tmp_path / "envlock.lock").read_bytes())["facts"]["environ"]["PYTHONHASHSEED"] == locked
        others = {other: envlock("verify", environ={"PYTHONHASHSEED": other}) for other in ("7", "8", "random")}
        refused = [other for other, done in others.items() if done.returncode == 1]
        assert refused == ([] if locked is None else ["8", "random"])
        assert all("environ.PYTHONHASHSEED: locked 7, live " in others[other].stdout for other in refused)


def test_a_hash_seed_that_tox_has_drawn_is_named(envlock: Command) -> None:
    done = envlock("capture", environ={"PYTHONHASHSEED": "1234", "TOX_ENV_NAME": "py311"})
    assert (
        "warning: PYTHONHASHSEED=1234 comes from tox, which draws another for each run, and is locked; "
        "fix it in tox's settings: `set_env = PYTHONHASHSEED=0`\n"
    ) in done.stderr


def test_check_says_what_would_change_and_writes_nothing(envlock: Command, tmp_path: Path) -> None:
    site = tmp_path / "site"
    distribution(site, "mine", "1.0")
    environ = {"PYTHONPATH": str(site)}
    envlock("capture", "-q", "-o", "x.lock", environ=environ)
    before = (tmp_path / "x.lock").read_bytes()
    distribution(site, "other", "2.0")
    done = envlock("capture", "--check", "-o", "x.lock", environ=environ)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "x.lock is not up to date:\n"
        "does not match under policy strict: 1 fact differs\n"
        "  x packages.other: locked absent, live 2.0\n"
        "      why: An additional or missing package can replace a kernel, a backend or a plug-in.\n"
        f"      fix: {TAKE_AWAY}\n"
        "to get the locked packages: `envlock sync x.lock`; for other ways: `envlock explain --lock x.lock packages.other`\n"
    )
    assert (tmp_path / "x.lock").read_bytes() == before
    shutil.rmtree(site / "other-2.0.dist-info")
    assert envlock("capture", "--check", "-o", "x.lock", environ=environ).returncode == 0


def test_a_lockfile_of_another_environment_is_not_replaced_without_a_word(envlock: Command, tmp_path: Path) -> None:
    """A third of the packages has other versions: the tests' own interpreter has more than a hundred."""
    said = "warning: this replaces the lockfile of another environment (100 packages with other versions); if it is the team's"
    for version in ("1.0", "2.0"):
        for number in range(100):
            distribution(tmp_path / version, f"mine{number}", version)
        done = envlock("capture", "-o", "x.lock", environ={"PYTHONPATH": str(tmp_path / version)})
        assert (done.returncode, said in done.stderr) == (0, version == "2.0")


@pytest.mark.parametrize("kind", ["newer", "cut off", "in conflict"])
def test_a_lockfile_that_cannot_be_read_is_not_replaced_without_a_word(
    kind: str, envlock: Command, tmp_path: Path
) -> None:
    """Its policy and rules are lost, and a hint may have led here."""
    envlock("capture", "-q", "-p", "bits")
    file = tmp_path / "envlock.lock"
    text = file.read_text(encoding="utf-8")
    broken = {
        "newer": text.replace('"lock_version": 1', '"lock_version": 7'),
        "cut off": text[:500],
        "in conflict": f"<<<<<<< HEAD\n{text}",
    }
    file.write_text(broken[kind], encoding="utf-8")
    problem = envlock("verify").stderr.partition("\n")[0].removeprefix("error: ")
    said = envlock("capture").stderr
    assert f"warning: nothing of the old file is kept, such as its policy, rules and canary: {problem}\n" in said
    assert "warning" not in envlock("capture").stderr


@pytest.mark.parametrize(
    ("args", "content", "code", "stderr"),
    [
        (["-o", "x.lock"], None, 3, f"error: lockfile not found: x.lock\nhint: {MAKE}\n"),
        (["-o", "x.lock"], "", 3, f"error: lockfile x.lock is not valid: it is empty\nhint: {RESTORE}\n"),
        (["-o", "x.lock", "-q"], "", 3, f"error: lockfile x.lock is not valid: it is empty\nhint: {RESTORE}\n"),
        (["-o", "/"], None, 3, "error: cannot read lockfile /: it is a folder\nhint: name the lockfile itself\n"),
        (["--only", "cpu"], None, 2, "error: `--check` and `--only` exclude each other\nhint: remove `--only`\n"),
        (
            ["-o", "-"],
            None,
            2,
            "error: `--check` needs a file, and `-` is stdout\nhint: name the file with `--output`\n",
        ),
    ],
)
def test_check_of_what_is_no_lock(
    args: list[str], content: str | None, code: int, stderr: str, envlock: Command, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "x.lock").write_text(content, encoding="utf-8")
    done = envlock("capture", "--check", *args)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", stderr)


def test_check_does_not_wait_for_a_fifo(envlock: Command, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.lock")
    done = envlock("capture", "--check", "-o", "x.lock")
    error = "error: cannot read lockfile x.lock: it is not a regular file\nhint: name the lockfile itself\n"
    assert (done.returncode, done.stdout, done.stderr) == (3, "", error)


def test_check_does_not_read_what_is_too_large_for_a_lock(envlock: Command, tmp_path: Path) -> None:
    (tmp_path / "x.lock").touch()
    os.truncate(tmp_path / "x.lock", 3 * 2**30)
    limited = Command(["/bin/sh", "-c", 'ulimit -v 2000000; exec "$@"', "sh", *envlock.argv], tmp_path)
    done = limited("capture", "--check", "-o", "x.lock")
    error = "error: lockfile x.lock is too large: 3072 MB, limit 4 MB\nhint: name the lockfile itself\n"
    assert (done.returncode, done.stderr) == (3, error)


def test_show_for_people(envlock: Command, tmp_path: Path) -> None:
    site = tmp_path / "site"
    url = '{"url": "https://me:SECRET@example.org/mine.git", "vcs_info": {"vcs": "git", "commit_id": "%s"}}'
    distribution(site, "mine", "1.0", {"direct_url.json": url % ("0a" * 20)})
    distribution(site, "mine_two", "1.0", {"direct_url.json": "SECRET"})
    environ = {
        "PYTHONPATH": str(site),
        "TF_DETERMINISTIC_OPS": "1",
        "LD_PRELOAD": "",
        "AWS_SECRET_ACCESS_KEY": "SECRET",
    }
    lock = envlock("capture", "-o", "-", environ=environ)
    assert "SECRET" not in lock.stdout + lock.stderr
    done = envlock("show", "-", stdin=lock.stdout.encode())
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0].startswith("lock_version 1, envlock ")
    assert "  mine 1.0 from https://example.org/mine.git at 0a0a0a0a0a0a" in lines
    assert "  TF_DETERMINISTIC_OPS=1" in lines
    assert "tensorflow: none" in lines
    assert lines[-2:] == [
        "could not be collected",
        "  packages.mine-two.origin: its direct_url.json does not follow the packaging specification",
    ]


# --- renewing


def test_a_renewal_says_what_changed(envlock: Command, tmp_path: Path) -> None:
    site = tmp_path / "site"
    for number in range(10):
        distribution(site, f"old{number}", "1.0", {})
    environ = {"PYTHONPATH": str(site)}
    first = envlock("capture", environ=environ).stderr
    assert first.startswith("wrote envlock.lock: ")
    same = envlock("capture", environ=environ).stderr.splitlines()
    assert (same[0].partition(":")[0], same[1:]) == ("renewed envlock.lock", ["  no fact changed"])
    environ["TF_CUDNN_DETERMINISTIC"] = "1"
    for number in range(10):
        distribution(site, f"old{number}", "2.0", {})
        shutil.rmtree(site / f"old{number}-1.0.dist-info")
    renewed = envlock("capture", environ=environ).stderr.splitlines()
    assert renewed[1:] == [
        "  environ.TF_CUDNN_DETERMINISTIC: was unset, now 1",
        *(f"  packages.old{number}.version: was 1.0, now 2.0" for number in range(7)),
        "  and 3 more changes",
    ]


def test_one_change_is_accepted_and_the_rest_is_kept(envlock: Command) -> None:
    assert envlock("capture", "-q").returncode == 0
    environ = {"TF_CUDNN_DETERMINISTIC": "1", "TF_ENABLE_ONEDNN_OPTS": "0"}
    done = envlock("capture", "--only", "environ.TF_CUDNN_DETERMINISTIC", environ=environ)
    assert done.stderr.splitlines()[1:] == ["  environ.TF_CUDNN_DETERMINISTIC: was unset, now 1"]
    assert envlock("verify", environ={"TF_CUDNN_DETERMINISTIC": "1"}).returncode == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["--only", "cpu.flag"],
            "no fact matches `cpu.flag`\nhint: run `envlock diff envlock.lock live` for the paths",
        ),
        (
            ["--only", "cpu.flags", "-o", "new.lock"],
            "`--only` needs a valid lockfile to renew\nhint: run `envlock capture` without it first",
        ),
    ],
)
def test_what_cannot_be_accepted_writes_nothing(
    args: list[str], message: str, envlock: Command, tmp_path: Path
) -> None:
    assert envlock("capture", "-q").returncode == 0
    before = (tmp_path / "envlock.lock").read_bytes()
    done = envlock("capture", *args, environ={"TF_CUDNN_DETERMINISTIC": "1"})
    assert (done.returncode, done.stderr) == (2, f"error: {message}\n")
    assert [file.read_bytes() for file in tmp_path.glob("*.lock")] == [before]


# --- the project


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pyproject.toml", '[project]\nname = "My.Project"\n'),
        ("pyproject.toml", '[tool.poetry]\nname = "my_project"\n'),
        ("setup.cfg", "[metadata]\nname = my-project\n"),
    ],
)
def test_the_projects_own_package_is_not_held(file: str, text: str, envlock: Command, tmp_path: Path) -> None:
    """Not its version, its commit or whether it is installed: neither verify nor `capture --check` minds."""
    (tmp_path / file).write_text(text, encoding="utf-8")
    site = tmp_path / "site"
    distribution(site, "my_project", "0.3", {"direct_url.json": '{"url": "file:///x", "dir_info": {"editable": true}}'})
    environ = {"PYTHONPATH": str(site)}
    assert envlock("capture", "-q", environ=environ).returncode == 0
    assert json.loads((tmp_path / "envlock.lock").read_bytes())["project"]["name"] == "my-project"
    shutil.rmtree(site / "my_project-0.3.dist-info")
    for words in (["verify"], ["capture", "--check"]):
        assert envlock(*words, environ=environ).returncode == 0
        assert envlock(*words).returncode == 0
    distribution(site, "my_project", "0.4.dev3+g1234567", {})
    for words in (["verify"], ["capture", "--check"]):
        assert envlock(*words, environ=environ).returncode == 0
    distribution(site, "another", "1.0", {})
    assert "packages.another" in envlock("verify", environ=environ).stdout


def test_a_new_lock_lies_in_the_projects_folder(envlock: Command, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    below = tmp_path / "src" / "pkg"
    below.mkdir(parents=True)
    done = Command(envlock.argv, below)("capture")
    assert done.stderr.startswith(f"wrote {tmp_path}/envlock.lock: ")
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.lock")] == ["envlock.lock"]


def test_the_lock_above_a_repository_is_not_touched(envlock: Command, tmp_path: Path) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "envlock.lock").write_bytes(b"another project's")
    assert Command(envlock.argv, tmp_path / "repo")("capture", "-q").returncode == 0
    assert (tmp_path / "envlock.lock").read_bytes() == b"another project's"
    assert (tmp_path / "repo" / "envlock.lock").exists()


@pytest.mark.slow
def test_three_locks_in_a_monorepo(envlock: Command, tmp_path: Path) -> None:
    """Each package has its own, and the root has one for all that has none."""
    (tmp_path / ".git").mkdir()
    folders = {name: tmp_path / name for name in ("one", "two", "scripts")}
    for name, folder in folders.items():
        folder.mkdir()
        if name != "scripts":
            (folder / "pyproject.toml").write_text(f'[project]\nname = "{name}"\n', encoding="utf-8")
    environ = {"one": {"TF_CUDNN_DETERMINISTIC": "1"}, "two": {"TF_ENABLE_ONEDNN_OPTS": "0"}, "scripts": {}}
    for name, folder in folders.items():
        assert Command(envlock.argv, folder)("capture", "-q", environ=environ[name]).returncode == 0
    locks = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.lock"))
    assert locks == ["envlock.lock", "one/envlock.lock", "two/envlock.lock"]
    codes = {
        (name, other): Command(envlock.argv, folder)("verify", environ=environ[other]).returncode
        for name, folder in folders.items()
        for other in folders
    }
    assert codes == {(name, other): int(name != other) for name in folders for other in folders}
