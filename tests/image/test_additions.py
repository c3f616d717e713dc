"""What a project adds to its image: every value checked where it is set, files read as they are."""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from envlock.image import payload, render
from envlock.image.additions import Additions, CopiedFile, parse_additions
from envlock.image.copies import Copied, collect
from envlock.lock.models import Container
from envlock.runtime.errors import UsageError
from tests.conftest import Command
from tests.image.plans import DIGEST, lock, planned, without
from tests.image.test_injection import HOSTILE
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
    ("environ", {"A": 1}, "`environ.A`: `1` is not a valid text"),
    ("environ", {"A": "$(id)"}, "`environ.A`: `$(id)` is not a valid text"),
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
            # The project's own values are between quotes that they do not have.
            own = r"""    TEAM=("[^"\\$`]*"|'[^'\\$`]*')( \\)?"""
            assert text not in line or re.fullmatch(f"{plain}|{own}", line), (key, text)


HARMLESS = {
    "PYTHONUNBUFFERED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "CONFIG": '{"a": ["b"]}',
    "NAME": "\u00fc \u65e5\u672c",
}


def test_values_of_any_language_and_json_are_set_as_they_are() -> None:
    made = parse_additions({"environ": HARMLESS}, [], WHERE)
    assert made.warnings == ()
    text = render.dockerfile(planned("wheels", added=made))
    assert """CONFIG='{"a": ["b"]}'""" in text
    assert 'NAME="\u00fc \u65e5\u672c"' in text
    assert text.count("PYTHONUNBUFFERED") == text.count('PYTHONUNBUFFERED="0"') == 1
    recorded = Container.model_validate_json(made.recorded.model_dump_json())
    assert recorded.environ == HARMLESS


def test_output_is_not_buffered() -> None:
    assert 'PYTHONUNBUFFERED="1"' in render.dockerfile(planned("wheels"))


SECRET_VARIABLES = [
    ("API_TOKEN", "abcdefgh", True),
    ("DB_PASSWORD", "hunter2", True),
    ("AWS_SECRET_ACCESS_KEY", "abcdefgh", True),
    ("WANDB_API_KEY", "0123456789", True),
    ("URL", "postgres://user:secret@db/x", True),
    ("X", "hf_abcdefghijklmnopqrstuvwx", True),
    ("TOKENIZERS_PARALLELISM", "false", False),
    ("TOKEN_FILE", "/run/secrets/token", False),
    ("MONKEY", "banana-split", False),
    ("KEYBOARD_LAYOUT", "german", False),
    ("MAX_TOKENS", "200000", False),
]


@pytest.mark.parametrize(("name", "value", "expected"), SECRET_VARIABLES)
def test_a_variable_that_looks_like_a_secret_is_warned_of(name: str, value: str, expected: bool) -> None:
    warnings = parse_additions({"environ": {name: value}}, [], WHERE).warnings
    assert bool(warnings) is expected
    assert value not in "".join(warnings)


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
    found = collect(project, ["."], project / "wheelhouse").files
    assert [file.path for file in found] == ["go.sh", "src/a.py", "src/deep/b.py", "train.py"]
    assert [file.path for file in found if file.is_program] == ["go.sh"]
    assert found[3].sha256 == hashlib.sha256(b"train.py").hexdigest()
    named = collect(project, ["src/.env", "src/deep"], project)
    assert [file.path for file in named.files] == ["src/.env", "src/deep/b.py"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone.py", "cannot read gone.py, which `copy` names: No such file or directory"),
        ("../secret", "`copy` names what is not in the project: ../secret"),
        ("/etc/passwd", "`copy` names what is not in the project: /etc/passwd"),
        ("src/link.py", "`copy` names what is not in the project: src/link.py"),
        ("new\nline", "`copy` names a file with a name that is not portable: new\\nline"),
    ],
)
def test_what_is_not(project: Path, name: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        collect(project, [name], project / "wheelhouse")
    assert raised.value.message == message


def paths(copied: Copied) -> list[str]:
    return [file.path for file in copied.files]


def write(project: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text, encoding="utf-8")


def test_all_refused_names_are_in_one_message(project: Path) -> None:
    (project / "src" / "a\nb.py").touch()
    os.mkfifo(project / "pipe")
    with pytest.raises(UsageError) as raised:
        collect(project, ["src", "gone.py", "../secret", "pipe"], project / "wheelhouse")
    assert raised.value.message.splitlines() == [
        "`copy` has 4 names that cannot be copied:",
        "  `copy` names a file with a name that is not portable: src/a\\nb.py",
        "  cannot read gone.py, which `copy` names: No such file or directory",
        "  `copy` names what is not in the project: ../secret",
        "  `copy` names a special file: pipe",
    ]


def test_names_in_any_language_and_links_arrive(project: Path, tmp_path: Path) -> None:
    name = 'src/pkg with space/\u00fcn\u00efcode\'s "x".txt'
    write(project, {name: "x"})
    (project / "src" / "inlink.py").symlink_to("../train.py")
    (project / "src" / "absolute").symlink_to(project / "src" / "deep")
    copied = collect(project, ["."], project / "wheelhouse")
    files = {file.path: file for file in copied.files}
    assert name in files
    assert (files["src/inlink.py"].link, files["src/absolute"].link) == ("../train.py", "deep")
    assert copied.warnings == ("`copy` leaves out links to what is not copied: src/link.py",)
    # Rebuilt from the names that a lockfile has recorded, they are the same.
    assert collect(project, sorted(files), project / "wheelhouse").files == copied.files
    with (tmp_path / "code.tar").open("wb") as stream:
        payload.write({f"app/{path}": file for path, file in files.items()}, 0, tmp_path, stream)
    with tarfile.open(tmp_path / "code.tar") as tar:
        # Not by extractall(filter=...), which Debian 12's Python 3.11.2 does not know.
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(tmp_path / "out")
    assert (tmp_path / "out" / "app" / name).read_text(encoding="utf-8") == "x"
    assert (tmp_path / "out" / "app" / "src" / "inlink.py").read_text(encoding="utf-8") == "train.py"
    assert (tmp_path / "out" / "app" / "src" / "absolute" / "b.py").is_file()
    recorded = Additions(copied.files).recorded
    assert Container.model_validate_json(recorded.model_dump_json()) == recorded


def test_dockerignore_goes_before_gitignore(project: Path) -> None:
    write(project, {"data/big.bin": "", "data/small.csv": "", "src/x.ckpt": "", ".gitignore": "src\n"})
    assert "src/a.py" not in paths(collect(project, ["."], project / "wheelhouse"))
    write(project, {".dockerignore": "# data\ndata\n!data/small.csv\n**/*.ckpt\n"})
    copied = collect(project, ["."], project / "wheelhouse")
    assert paths(copied) == ["data/small.csv", "go.sh", "src/a.py", "src/deep/b.py", "train.py"]
    assert copied.summary == "5 files of the project, 29 bytes; .dockerignore leaves out data, src/x.ckpt"


def test_each_folder_has_a_gitignore_of_its_own(project: Path) -> None:
    files = {"src/.gitignore": "*.h5\n!keep.h5\n/deep/\n", "src/m.h5": "", "src/keep.h5": "", "m.h5": ""}
    write(project, files)
    assert paths(collect(project, ["."], project / "wheelhouse")) == [
        "go.sh",
        "m.h5",
        "src/a.py",
        "src/keep.h5",
        "train.py",
    ]


def test_what_the_settings_name_is_copied_whatever_is_ignored(project: Path) -> None:
    write(project, {".gitignore": "*.py\nmodels/\n", "models/a.h5": "", "models/b.ckpt": ""})
    copied = collect(project, ["train.py", "models"], project / "wheelhouse", ["**/*.ckpt"])
    assert paths(copied) == ["models/a.h5", "train.py"]
    assert copied.summary.endswith("; `exclude` leaves out models/b.ckpt")


def test_a_malformed_pattern_is_refused(project: Path) -> None:
    with pytest.raises(UsageError) as raised:
        collect(project, ["."], project / "wheelhouse", ["a[b"])
    assert raised.value.message == "`exclude` has a malformed pattern: a[b"


SECRETS = ["id_rsa", "certs/server.pem", "credentials.json", "secrets.py", "prod.env", "gcp/service-account-1.json"]


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_by_its_name_is_warned_of(project: Path, name: str) -> None:
    write(project, {f"src/{name}": "x", "src/id_rsa.pub": "x", "src/tokenizer.json": "x", "src/keys.py": "x"})
    (warning, _) = collect(project, ["src"], project / "wheelhouse").warnings
    assert f"looks like a secret into the image: src/{name};" in warning


def test_a_key_by_its_content_and_a_pointer_are_warned_of(project: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 130\n"
    write(project, {"src/harmless": "-----BEGIN OPENSSH PRIVATE KEY-----\n", "src/model.bin": pointer})
    secret, lfs, _ = collect(project, ["src"], project / "wheelhouse").warnings
    assert "into the image: src/harmless;" in secret
    assert lfs == "`copy` has 1 pointer of Git LFS in place of the content: src/model.bin; fetch it first"


def test_many_bytes_are_said(project: Path) -> None:
    with (project / "data.bin").open("wb") as stream:
        stream.truncate(300_000_000)
    copied = collect(project, ["data.bin", "train.py"], project / "wheelhouse")
    assert copied.warnings == (
        "`copy` adds 300.0 MB to the image; the largest are data.bin (300.0 MB), train.py (8 bytes): "
        "mount data, or leave it out with `exclude`",
    )


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


@pytest.mark.parametrize(
    ("table", "message", "hint"),
    [
        (
            'ports = "80"',
            "[tool.envlock] in {file}: `container` has an unknown key: ports",
            "use only `copy`, `exclude`, `workdir`, `user`, `command`, `environ`, `apt`, `apt-sources`",
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
