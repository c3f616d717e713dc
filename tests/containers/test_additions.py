"""What a project adds to its image: every value checked where it is set, files read as they are."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any

import pytest

from envlock.containers import render
from envlock.containers.additions import Additions, CopiedFile, parse_additions
from envlock.containers.copies import collect
from envlock.runtime.errors import UsageError
from tests.conftest import Command
from tests.containers.plans import DIGEST, lock, planned, without
from tests.containers.test_injection import HOSTILE
from tests.locks import encode

WHERE = "[tool.envlock.container]"


def test_defaults_and_what_is_recorded() -> None:
    assert parse_additions({}, [], WHERE) == Additions((), "/home/user", "1000:1000", (), ())
    file = CopiedFile("src/train.py", "ab" * 32, False, Path("/p/src/train.py"))
    wanted = {"workdir": "/app/", "user": "1234", "command": ["python", "train.py"], "environ": {"TEAM": "vision 2"}}
    made = parse_additions(wanted, [file], WHERE)
    assert made == Additions((file,), "/app", "1234:1234", ("python", "train.py"), (("TEAM", "vision 2"),))
    recorded = {**wanted, "files": {"src/train.py": "ab" * 32}, "workdir": "/app", "user": "1234:1234"}
    assert made.recorded.model_dump() == recorded


REFUSED: list[tuple[str, Any, str]] = [
    ("user", "root", "`user`: `root` is not a valid user"),
    ("user", "1000:", "`user`: `1000:` is not a valid user"),
    ("user", 1000, "`user`: `1000` is not a valid user"),
    ("user", "1000:1000\nRUN id", "`user`: `1000:1000\\nRUN id` is not a valid user"),
    ("workdir", "app", "`workdir`: `app` is not a valid path"),
    ("workdir", "/app/../etc", "`workdir` is not a plain path: /app/../etc"),
    ("workdir", "/", "`workdir` is a folder of the system: /"),
    ("workdir", "/etc/", "`workdir` is a folder of the system: /etc/"),
    ("workdir", "/opt/venv/lib", "`workdir` is a folder of the system: /opt/venv/lib"),
    ("workdir", "/usr/local", "`workdir` is a folder of the system: /usr/local"),
    ("command", "python train.py", "`command` must be a list, and `environ` a table"),
    ("command", ["sh", "-c", "id; id"], "`command`: `id; id` is not a valid word"),
    ("environ", {"A B": "1"}, "`environ`: `A B` is not a valid variable"),
    ("environ", {"A": 1}, "`environ.A`: `1` is not a valid value"),
    ("environ", {"A": "$(id)"}, "`environ.A`: `$(id)` is not a valid value"),
    ("environ", {"TF_ENABLE_ONEDNN_OPTS": "0"}, "`environ.TF_ENABLE_ONEDNN_OPTS` is a fact of the lockfile"),
    ("environ", {"PYTHONSTARTUP": "/x"}, "`environ.PYTHONSTARTUP` belongs to the image or its loader"),
    ("environ", {"ENVLOCK_MODE": "off"}, "`environ.ENVLOCK_MODE` belongs to the image or its loader"),
    ("environ", {"PATH": "/x"}, "`environ.PATH` belongs to the image or its loader"),
]


@pytest.mark.parametrize(("key", "value", "message"), REFUSED)
def test_a_bad_value_is_refused_by_its_key(key: str, value: Any, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_additions({key: value}, [], WHERE)
    assert raised.value.message == f"{WHERE}: {message}"


@pytest.mark.parametrize("key", ["user", "workdir", "command", "environ"])
def test_nothing_hostile_becomes_syntax(key: str) -> None:
    for text in HOSTILE:
        value = {"command": [text], "environ": {"TEAM": text}}.get(key, text)
        try:
            made = parse_additions({key: value}, [], WHERE)
        except UsageError:
            continue
        for line in render.dockerfile(planned("wheels", added=made)).splitlines():
            plain = r'(WORKDIR|RUN|CMD|ENV|   ) [A-Za-z0-9 _.,:;=+/@%^()"\[\]-]*( \\)?'
            assert text not in line or re.fullmatch(plain, line), (key, text)


# --- files


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("train.py", "src/a.py", "src/deep/b.py", "src/__pycache__/a.pyc", "src/.env", ".git/config"):
        file = tmp_path / "p" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name, encoding="utf-8")
    for name in ("envlock.lock", "venv/pyvenv.cfg", "venv/x.py", "wheelhouse/a.whl", "go.sh"):
        (tmp_path / "p" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "p" / name).write_text("", encoding="utf-8")
    (tmp_path / "p" / "go.sh").chmod(0o700)
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    (tmp_path / "p" / "src" / "link.py").symlink_to(tmp_path / "secret")
    return tmp_path / "p"


def test_what_is_copied(project: Path) -> None:
    found = collect(project, ["."], project / "wheelhouse")
    assert [file.path for file in found] == ["go.sh", "src/a.py", "src/deep/b.py", "train.py"]
    assert [file.path for file in found if file.is_program] == ["go.sh"]
    assert found[3].sha256 == hashlib.sha256(b"train.py").hexdigest()
    assert [file.path for file in collect(project, ["src/.env", "src/deep"], project)] == ["src/.env", "src/deep/b.py"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone.py", "cannot read gone.py, which `copy` names: No such file or directory"),
        ("../secret", "`copy` names what is not in the project: ../secret"),
        ("/etc/passwd", "`copy` names what is not in the project: /etc/passwd"),
        ("src/link.py", "`copy` names what is not in the project: src/link.py"),
        ("a b", "`copy` names a file with a name that is not portable: a b"),
    ],
)
def test_what_is_not(project: Path, name: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        collect(project, [name], project / "wheelhouse")
    assert raised.value.message == message


def test_a_folder_that_cannot_be_read(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "src" / "locked").mkdir(mode=0)
    monkeypatch.chdir(project)  # the folders above may be closed to others, too
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)  # to root, no mode forbids anything
    try:
        with pytest.raises(UsageError) as raised:
            collect(Path(), ["src"], Path("wheelhouse"))
    finally:
        os.seteuid(user)
    assert raised.value.message == "cannot read src/locked, which `copy` names: Permission denied"


# --- the command line


def settled(envlock: Command, table: str) -> None:
    pinned = {"name": "docker.io/library/python", "tag": "3.11.7-slim-bookworm", "digest": DIGEST, "manifest": None}
    base = {**pinned, "platform": "linux/amd64", "route": "wheels", "reason": "A test."}
    held = without(lock(base_image=base, image=...), "mine")
    (envlock.folder / "envlock.lock").write_bytes(encode(held))
    (envlock.folder / "pyproject.toml").write_text(f"[tool.envlock.container]\n{table}\n", encoding="utf-8")


def test_the_settings_are_in_the_dockerfile(envlock: Command) -> None:
    settled(envlock, 'copy = ["train.py"]\nworkdir = "/app"\ncommand = ["python", "train.py"]\nuser = "7:8"')
    (envlock.folder / "train.py").write_text("print(1)\n", encoding="utf-8")
    lines = envlock("build", "--dry-run").stdout.splitlines()
    wanted = ["ADD code.tar /", "WORKDIR /app", "USER 7:8", 'CMD ["python", "train.py"]']
    assert [line for line in lines if line in wanted] == wanted
    lines = envlock("build", "--dry-run", "--user", "9").stdout.splitlines()
    assert "USER 9:9" in lines


@pytest.mark.parametrize(
    ("table", "message", "hint"),
    [
        (
            'ports = "80"',
            "[tool.envlock] in {file}: `container` has an unknown key: ports",
            "use only `copy`, `workdir`, `user`, `command`, `environ`, `apt`, `apt-sources`",
        ),
        (
            'apt = "libgl1"',
            "[tool.envlock.container] in {file}: `apt` must be a list of strings",
            'write it like `apt = ["libgl1", "ffmpeg=7:5.1.6-0"]`',
        ),
        (
            'apt = ["libgl1; id"]',
            "[tool.envlock.container] in {file}: `apt` has a malformed entry: libgl1; id",
            'write it like `apt = ["libgl1", "ffmpeg=7:5.1.6-0"]`',
        ),
        (
            'workdir = "/usr/lib"',
            "[tool.envlock.container] in {file}: `workdir` is a folder of the system: /usr/lib",
            'use another, such as "/app"',
        ),
    ],
)
def test_bad_settings_are_exit_2(envlock: Command, table: str, message: str, hint: str) -> None:
    settled(envlock, table)
    done = envlock("build", "--dry-run")
    file = envlock.folder / "pyproject.toml"
    assert (done.returncode, done.stderr) == (2, f"error: {message.format(file=file)}\nhint: {hint}\n")


@pytest.mark.parametrize(
    ("options", "first", "second"),
    [
        (["--dry-run", "--output", "x"], "--dry-run", "--output"),
        (["--rebuild", "--tag", "a:1"], "--rebuild", "--tag"),
        (["--rebuild", "--gpus"], "--rebuild", "--gpus"),
        (["--output", "x", "--tag", "a:1"], "--output", "--tag"),
        (["--dry-run", "--no-cache"], "--dry-run", "--no-cache"),
        (["--rebuild", "--archive", "x.tar"], "--rebuild", "--archive"),
    ],
)
def test_contradictory_options_are_exit_2(envlock: Command, options: list[str], first: str, second: str) -> None:
    done = envlock("build", *options)
    expected = f"error: `{first}` and `{second}` exclude each other\nhint: remove `{second}`\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)
    assert not (envlock.folder / "x").exists()


def test_a_bad_tag_is_refused_before_anybody_is_asked(envlock: Command) -> None:
    settled(envlock, "")
    done = envlock("build", "--tag", "UPPER/x")
    expected = "error: invalid image name `UPPER/x`\nhint: use a name in lower case, such as team/train:1\n"
    assert (done.returncode, done.stderr) == (2, expected)
