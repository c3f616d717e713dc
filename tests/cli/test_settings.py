"""Where a setting comes from: flag, then variable, then `[tool.envlock]`; and what cannot stand there."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from envlock.lock.settings import Config, check_pattern, load
from envlock.runtime.errors import UsageError
from tests.conftest import Command
from tests.locks import document, encode

PROJECT = '[tool.envlock]\nlock = "config.lock"\npolicy = "same-arch"\n'


@pytest.mark.parametrize(
    ("args", "environ", "file", "policy"),
    [
        ([], {}, "config.lock", "same-arch"),
        ([], {"ENVLOCK_LOCK": "variable.lock", "ENVLOCK_POLICY": "functional"}, "variable.lock", "functional"),
        (
            ["-o", "flag.lock", "-p", "strict"],
            {"ENVLOCK_LOCK": "variable.lock", "ENVLOCK_POLICY": "functional"},
            "flag.lock",
            "strict",
        ),
    ],
)
def test_flag_over_variable_over_project(
    args: list[str], environ: dict[str, str], file: str, policy: str, envlock: Command, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    done = envlock("capture", "-q", *args, environ=environ)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [path.name for path in tmp_path.glob("*.lock")] == [file]
    assert json.loads((tmp_path / file).read_text())["policy"] == {"name": policy, "overrides": {}}


def test_a_bad_project_file_is_exit_2(envlock: Command, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.envlock]\nlocks = 1\n", encoding="utf-8")
    done = envlock("verify")
    expected = (
        f"error: [tool.envlock] in {tmp_path}/pyproject.toml has an unknown key: locks\n"
        "hint: use only `lock`, `policy`, `entry`, `lint`, `container`, `data`\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


LOOSE = {"name": "functional", "overrides": {"cpu.flags": "ignore"}}


@pytest.mark.parametrize(
    ("args", "project", "policy"),
    [
        ([], "", LOOSE),
        ([], "[tool.envlock]\n", LOOSE),
        (["-p", "strict"], "", {"name": "strict", "overrides": {}}),
        ([], '[tool.envlock]\npolicy = "same-arch"\n', {"name": "same-arch", "overrides": {}}),
        (
            [],
            '[tool.envlock.policy]\n"cpu.*" = "exact"\n',
            {"name": "strict", "overrides": {"cpu.*": "exact"}},
        ),
    ],
)
def test_a_renewed_lock_keeps_its_policy_unless_another_is_named(
    args: list[str], project: str, policy: dict[str, object], envlock: Command, tmp_path: Path
) -> None:
    file = tmp_path / "envlock.lock"
    file.write_bytes(encode(document(policy=LOOSE)))
    (tmp_path / "pyproject.toml").write_text(project, encoding="utf-8")
    done = envlock("capture", "-q", *args)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert json.loads(file.read_text())["policy"] == policy
    assert envlock("capture", "--check", *args).returncode == 0


def test_what_is_no_lock_has_no_policy_to_keep(envlock: Command, tmp_path: Path) -> None:
    unknown = {"name": "loosest", "overrides": {}}
    (tmp_path / "envlock.lock").write_bytes(encode(document(policy=unknown)))
    assert envlock("capture", "-q").returncode == 0
    assert json.loads((tmp_path / "envlock.lock").read_text())["policy"] == {"name": "strict", "overrides": {}}


@pytest.mark.longer
@pytest.mark.parametrize("project", ["[tool.envlock]\n", "[project]\n"])
def test_a_project_of_its_own_does_not_renew_the_lock_above_it(project: str, tmp_path: Path) -> None:
    below = tmp_path / "sub" / "below"
    below.mkdir(parents=True)
    (below.parent / "pyproject.toml").write_text(project, encoding="utf-8")
    (tmp_path / "envlock.lock").write_bytes(b"old")
    done = Command([sys.executable, "-m", "envlock"], below)("capture", "-q")
    assert (done.returncode, done.stderr) == (0, "")
    written = [path for path in tmp_path.rglob("envlock.lock") if path.read_bytes() != b"old"]
    assert written == [tmp_path / "sub" / "envlock.lock"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"a = " + b"[" * 5_000, "it is nested too deeply"),
        (b"[tool.envlock.policy." + b".".join([b"a"] * 3_000) + b"]\n", "it is nested too deeply"),
        (b"#" * (2**17 + 1), "it is larger than 128 KB"),
    ],
)
def test_a_file_that_is_too_much(data: bytes, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_bytes(data)
    with pytest.raises(UsageError) as caught:
        load(tmp_path)
    assert (caught.value.message, caught.value.exit_code) == (f"cannot read {file}: {problem}", 2)


def test_a_file_of_1_mb_is_read(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(PROJECT.encode().replace(b"\n", b"\r\n").ljust(2**17, b"#"))
    assert load(tmp_path).policy == "same-arch"


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ("", Config()),
        ("[tool.other]\nx = 1\n", Config()),
        ("tool = 3\n", Config()),
        ("[tool.envlock]\n", Config()),
        ('[tool.envlock]\npolicy = "functional"\n', Config(policy="functional")),
        (
            '[tool.envlock.policy]\nname = "same-arch"\n"cpu.flags" = "ignore"\n"packages.*" = "superset"\n',
            Config(policy="same-arch", overrides={"cpu.flags": "ignore", "packages.*": "superset"}),
        ),
        ('[tool.envlock.policy]\ncpu.flags = "superset"\n', Config(overrides={"cpu.flags": "superset"})),
    ],
)
def test_what_a_project_can_say(text: str, config: Config, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    assert load(tmp_path) == config


def test_the_lock_of_a_project_lies_beside_its_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert load(below) == Config(lock=tmp_path / "config.lock", policy="same-arch")


def test_a_nearer_project_without_settings_does_not_hide_them(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    assert load(tmp_path / "a").policy == "same-arch"


RULES = (
    "choose from: exact, exact_where_asked, exact_where_locked, exact_or_unset, same_minor, at_least, superset, "
    "within_3_percent, proven, ignore"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.envlock]\nlock = 3\n", "[tool.envlock] in {}: `lock` must be a path, and `policy` a name or a table"),
        ("[tool.envlock]\npolicy = 3\n", "[tool.envlock] in {}: `lock` must be a path, and `policy` a name or a table"),
        ("[tool]\nenvlock = 3\n", "[tool.envlock] in {} must be a table"),
        (
            '[tool.envlock]\npolicy = "x"\n',
            "[tool.envlock] in {}: unknown policy `x` (choose from: strict, bits, same-arch, functional)",
        ),
        (
            '[tool.envlock.policy]\n"cpu.flags" = "equal"\n',
            f"[tool.envlock] in {{}}: unknown rule `equal` ({RULES})",
        ),
        ('[tool.envlock.policy]\n"cpu.flags" = 3\n', f"[tool.envlock] in {{}}: unknown rule `3` ({RULES})"),
        (
            '[tool.envlock.policy]\n"cpu flags" = "exact"\n',
            "[tool.envlock] in {}: invalid path pattern `cpu flags` (example: `cpu.*`)",
        ),
    ],
)
def test_what_a_project_cannot_say(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load(tmp_path)
    assert (caught.value.message, caught.value.exit_code) == (message.format(file), 2)


@pytest.mark.parametrize("data", [b"[tool", b"\xff", b"a = 1\na = 2\n"])
def test_a_file_that_is_no_toml(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(data)
    with pytest.raises(UsageError) as caught:
        load(tmp_path)
    assert caught.value.message.startswith(f"cannot read {tmp_path / 'pyproject.toml'}: ")
    assert caught.value.hint == "correct the file"


def test_a_project_file_that_cannot_be_read(envlock: Command, tmp_path: Path) -> None:
    """The memory of a process at address 0 stands for a disk that fails, or a file of somebody else."""
    (tmp_path / "below").mkdir()
    (tmp_path / "pyproject.toml").symlink_to("/proc/self/mem")
    (tmp_path / "below" / "x.lock").write_bytes(encode(document()))
    envlock.folder = tmp_path / "below"
    done = envlock("verify")
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        f"error: cannot read {tmp_path / 'pyproject.toml'}: Input/output error\n"
        "hint: correct its permissions, or move to a folder with a pyproject.toml of its own\n",
    )


def test_a_pattern_of_thousands_of_characters_is_refused_in_short() -> None:
    with pytest.raises(UsageError) as caught:
        check_pattern(f"gpu.devices.{'9' * 5000}.name")
    assert caught.value.message == f"no fact matches `gpu.devices.{'9' * 288}...`"
