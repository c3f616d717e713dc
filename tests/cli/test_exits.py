"""Exit codes and streams where things go wrong: bad lockfiles, pipes that close, interrupts, bugs."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import envlock as package
from envlock.reports import FORMATS
from tests.conftest import Command
from tests.exhaustive import exhaustive
from tests.locks import document, encode

pytestmark = pytest.mark.processes

TIERS = "hint: choose from: strict, bits, same-arch, functional\n"
RESTORE = "hint: restore it from version control, or create it again with `envlock capture`\n"


def _plain() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONSAFEPATH": "1"}


def _bad_files(folder: Path) -> dict[str, str]:
    """Make every kind of bad lockfile; return the message of each."""
    contents = {
        "empty": (b"", "it is empty"),
        "cut": (b'{"lock_version":', "it is not JSON (line 1, column 17: a value is missing)"),
        "utf8": (b'{"a": "\xff"}', "it is not UTF-8 (at byte 7)"),
        "bom": (b"\xef\xbb\xbf{}", "it starts with a byte order mark (BOM)"),
        "twice": (b'{"a": 1, "a": 2}', "the key 'a' stands twice in one object"),
        "nan": (b'{"a": NaN}', "NaN is not a JSON number"),
        "deep": (b'{"a":' * 10_000, "it is nested too deeply"),
        "unknown": (encode(document(**{"a\x1b[2J": 1})), "it has an unknown field `a\\x1b[2J`"),
        "type": (encode(document(facts=[])), "`facts` must be an object, but is a list"),
    }
    messages = {}
    for name, (data, clause) in contents.items():
        (folder / name).write_bytes(data)
        messages[name] = f"error: lockfile {name} is not valid: {clause}\n{RESTORE}"
    (folder / "folder").mkdir()
    messages["folder"] = "error: cannot read lockfile folder: it is a folder\nhint: name the lockfile itself\n"
    os.mkfifo(folder / "fifo")
    messages["fifo"] = "error: cannot read lockfile fifo: it is not a regular file\nhint: name the lockfile itself\n"
    (folder / "huge").touch()
    os.truncate(folder / "huge", 100 * 2**20)
    messages["huge"] = "error: lockfile huge is too large: 100 MB, limit 4 MB\nhint: name the lockfile itself\n"
    (folder / "newer").write_bytes(encode(document(lock_version=2)))
    messages["newer"] = (
        "error: lockfile newer has lock_version 2, written by envlock 0.1.0; this envlock reads up to 1\n"
        "hint: upgrade envlock, or capture again with this one: `envlock capture`\n"
    )
    return messages


def _verify(argv: list[str], folder: Path) -> tuple[int, bytes, str, float, int]:
    """Return exit code, stdout, stderr, CPU seconds and peak KiB of one `verify`."""
    process = subprocess.Popen(argv, cwd=folder, env=_plain(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        out, err = process.stdout.read(), process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, out, err, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


@exhaustive
@pytest.mark.slow
def test_bad_lockfiles_are_exit_3_quick_small_and_without_a_traceback(envlock: Command, tmp_path: Path) -> None:
    messages = _bad_files(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    told = {name: envlock("verify", name) for name in messages}
    wanted = {name: (3, "", message) for name, message in messages.items()}
    assert {name: (done.returncode, done.stdout, done.stderr) for name, done in told.items()} == wanted
    costly = ("deep", "fifo", "huge")
    done = [_verify([*envlock.argv, "verify", name], tmp_path) for name in costly]
    assert [result[:3] for result in done] == [(3, b"", messages[name]) for name in costly]
    assert max(result[3] for result in done) < 2
    assert max(result[4] for result in done) < 500 * 1024
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("args", "code", "stderr"),
    [
        (
            ["verify", "--format", "xml"],
            2,
            f"error: unknown format `xml`\nhint: choose from: {', '.join(FORMATS)}\n",
        ),
        (["diff", "live", "live", "-p", "x"], 2, f"error: unknown policy `x`\n{TIERS}"),
        (["capture", "--policy", "x"], 2, f"error: unknown policy `x`\n{TIERS}"),
        (["verify", "-"], 3, f"error: lockfile from stdin is not valid: it is empty\n{RESTORE}"),
        (
            ["show", "gone.lock"],
            3,
            "error: lockfile not found: gone.lock\nhint: create one with `envlock capture`, or name one: `envlock "
            "verify path/to/envlock.lock`\n",
        ),
        (
            ["capture", "-o", "no/such/folder/x.lock"],
            6,
            "error: cannot write lockfile no/such/folder/x.lock: No such file or directory\n"
            "hint: create the folder first: no/such/folder\n",
        ),
    ],
)
def test_wrong_use_is_one_sentence_and_a_hint(args: list[str], code: int, stderr: str, envlock: Command) -> None:
    done = envlock(*args)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", stderr)


@pytest.mark.parametrize("args", [["verify", "--no-such"], ["diff", "one.lock"], []])
def test_what_the_parser_refuses_is_exit_2(args: list[str], envlock: Command) -> None:
    done = envlock(*args)
    assert (done.returncode, "Traceback" in done.stderr, "Usage: " in done.stderr + done.stdout) == (2, False, True)


def test_version_and_help_are_exit_0(envlock: Command) -> None:
    done = envlock("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"envlock {package.__version__}\n", "")
    assert envlock("run", "-h").returncode == 0


@pytest.mark.parametrize(("command", "code"), [("verify", 1), ("show", 0)])
def test_a_reader_that_goes_away_changes_no_exit_code(
    command: str, code: int, envlock: Command, tmp_path: Path
) -> None:
    (tmp_path / "x.lock").write_bytes(encode(document()))
    read, write = os.pipe()
    os.close(read)
    argv = [*envlock.argv, command, "x.lock"]
    done = subprocess.run(argv, cwd=tmp_path, env=_plain(), stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (code, b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirect", "message"),
    [
        ("> /dev/full", "cannot write to stdout: No space left on device\nhint: check the redirection of stdout\n"),
        (">&-", "cannot write to stdout: it is closed\nhint: open it, or use `-o FILE` if the command has it\n"),
        (
            "<&-",
            "cannot read the lockfile from stdin: it is closed\nhint: pipe a lockfile into envlock, or name one\n",
        ),
    ],
)
def test_a_stream_that_is_full_or_closed_is_no_bug(redirect: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.lock").write_bytes(encode(document()))
    command = f"exec {sys.executable} -m envlock show {'-' if '<' in redirect else 'x.lock'} {redirect}"
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=tmp_path, env=_plain(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {message}")


LOST = "error: cannot write to stdout: No space left on device\nhint: check the redirection of stdout\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "stderr"),
    [
        ("verify nope 2>&-", 3, ""),
        ("capture --without-tensorflow -o y.lock 2>&-", 0, ""),
        ("run x.lock -- python 2>&-", 1, ""),
        ("verfy 2>&-", 2, ""),
        ("capture --check -o z.lock 2>/dev/full", 3, ""),
        ("run x.lock -- python 2>/dev/full", 1, ""),
        ("verify --help >/dev/full", 2, LOST),
    ],
)
def test_a_broken_stream_changes_no_exit_code(command: str, code: int, stderr: str, tmp_path: Path) -> None:
    assert _in_a_shell(command, tmp_path) == (code, "", stderr)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "stderr"),
    [
        ("verify nope 2>/dev/full", 3, ""),
        ("capture --without-tensorflow -o y.lock 2>/dev/full && test -s y.lock", 0, ""),
        ("verfy 2>/dev/full", 2, ""),
        ("--help >/dev/full", 2, LOST),
        ("--version >/dev/full", 2, LOST),
        ("--version >/dev/full 2>&1", 2, ""),
        ("show x.lock >/dev/full 2>&1", 2, ""),
    ],
)
def test_nor_does_it_where_each_write_is_at_once(command: str, code: int, stderr: str, tmp_path: Path) -> None:
    for unbuffered in ("", "1"):
        assert _in_a_shell(command, tmp_path, PYTHONUNBUFFERED=unbuffered) == (code, "", stderr)


def _in_a_shell(command: str, folder: Path, **environ: str) -> tuple[int, str, str]:
    (folder / "x.lock").write_bytes(encode(document()))
    argv = ["/bin/sh", "-c", f"{sys.executable} -m envlock {command}"]
    done = subprocess.run(argv, cwd=folder, env={**_plain(), **environ}, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_current_folder_that_is_gone_is_no_bug(tmp_path: Path) -> None:
    command = f"mkdir gone; cd gone; rmdir ../gone; exec {sys.executable} -m envlock verify"
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=tmp_path, env=_plain(), capture_output=True, text=True, check=False
    )
    expected = "error: the current folder does not exist any more\nhint: change to another folder\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


def test_no_name_of_a_file_moves_a_terminal(envlock: Command) -> None:
    done = envlock("verify", "no\x1b[31m\x9b\u202e\nerror: x.lock")
    hint = "create one with `envlock capture`, or name one: `envlock verify path/to/envlock.lock`"
    shown = "error: lockfile not found: no\\x1b[31m\\x9b\\u202e\\nerror: x.lock"
    assert (done.returncode, done.stdout, done.stderr) == (3, "", f"{shown}\nhint: {hint}\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--x\u202e"], "No such option: --x\\u202e"),
        (["capture", "-q\u2067"], "No such option: -\\u2067"),
        (["verify", "a", "\x1b[31m\u202e"], "Got unexpected extra argument(s) (\\x1b[31m\\u202e)"),
    ],
)
def test_no_word_of_a_command_line_moves_a_terminal(envlock: Command, words: list[str], said: str) -> None:
    """The parser escapes what colours a terminal, but not what changes the order of its text."""
    done = envlock(*words)
    assert (done.returncode, done.stdout, done.stderr.splitlines()[-1]) == (2, "", f"Error: {said}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["verfy"], "unknown command `verfy`\nhint: did you mean `verify`?\n"),
        (["fleet", "chek"], "unknown command `chek`\nhint: did you mean `check`?\n"),
        (["\u202e"], "unknown command `\\u202e`\nhint: `envlock --help` lists the commands\n"),
    ],
)
def test_a_mistyped_command_is_answered_with_the_nearest_one(envlock: Command, words: list[str], said: str) -> None:
    done = envlock(*words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {said}")


def test_an_interrupt_is_exit_130(envlock: Command) -> None:
    argv = [*envlock.argv, "verify", "-"]
    process = subprocess.Popen(
        argv, env=_plain(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(b" " * 300_000)  # more than a pipe holds: once this returns, the other end is reading
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_an_interrupt_while_the_program_is_loaded_leaves_no_traceback(envlock: Command, tmp_path: Path) -> None:
    """A shell shows it as 130."""
    text = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(600)\n"
    (tmp_path / "typer.py").write_text(text, encoding="utf-8")
    done = envlock("verify", environ={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_an_interrupt_within_a_finalizer_is_not_lost(envlock: Command, tmp_path: Path) -> None:
    text = """
import os, signal, time
class Final:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(600)
Final()
time.sleep(600)
"""
    (tmp_path / "pydantic.py").write_text(text, encoding="utf-8")
    done = envlock("verify", environ={"PYTHONPATH": str(tmp_path)}, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_entry_points_of_others_are_not_read_at_the_start(envlock: Command, tmp_path: Path) -> None:
    """As pydantic would, for plugins, when it makes its first model; a fork has pydantic already."""
    info = tmp_path / "site" / "thing-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_bytes(b"Name: thing\nVersion: 1.0\n")
    (info / "entry_points.txt").write_bytes(b"[pydantic]\n\xff = thing:plugin\n")
    environ = {**_plain(), "PYTHONPATH": str(tmp_path / "site"), "PYTHONSAFEPATH": "1"}
    argv = [*envlock.argv, "explain", "--lock", "-"]
    done = subprocess.run(
        argv, env=environ, cwd=tmp_path, input=encode(document()), capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_name_of_an_interpreter_that_is_too_long_is_refused(envlock: Command) -> None:
    name = "x" * 5000
    done = envlock("verify", "-", environ={"ENVLOCK_PYTHON": name}, stdin=encode(document()))
    hint = "hint: name the interpreter of an environment, such as .venv/bin/python\n"
    assert (done.returncode, done.stdout) == (2, "")
    taken = f"environment: {name} (ENVLOCK_PYTHON)\n"
    assert done.stderr == f"{taken}error: cannot run {name}: File name too long\n{hint}"


def test_a_bug_is_exit_70_with_its_traceback(envlock: Command, tmp_path: Path) -> None:
    """A copy with a broken table: what is never the user's doing, and never reads as "does not match"."""
    broken = tmp_path / "broken"
    shutil.copytree(Path(package.__file__).parent, broken / "envlock", ignore=shutil.ignore_patterns("__pycache__"))
    (broken / "envlock/runtime/data/policy.json").write_text("[", encoding="utf-8")
    done = envlock("verify", environ={"PYTHONPATH": str(broken), "ENVLOCK_LOCK": "-"}, stdin=encode(document()))
    assert (done.returncode, done.stdout) == (70, "")
    assert re.match(r"Traceback \(most recent call last\):\n", done.stderr)
    assert done.stderr.endswith(
        "RuntimeError: envlock is not completely installed: runtime/data/policy.json: it is not JSON "
        "(line 1, column 2: a value is missing)\n"
        f"error: this is a bug in envlock {package.__version__}; please report it with the lines above\n"
    )
