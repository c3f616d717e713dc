"""`assert_locked()` in processes of its own: what it caches, inherits, refuses and lets pass."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import envlock
from envlock.runtime import assertion
from envlock.runtime.report import Finding, Report
from envlock.runtime.short_report import RUN
from tests.machines import distribution
from tests.measured import MEASURED

pytestmark = pytest.mark.processes

ROOT = str(Path(envlock.__file__).parents[1])

LOCK = """
import sys
sys.path.append({root!r})
from envlock.runtime.collectors import take_snapshot
found = take_snapshot()
import base64
import hashlib
import json
document = {{"lock_version": 1, "created_by": "a test", "facts": found.facts, "unavailable": found.unavailable,
            "policy": {{"name": "strict", "overrides": {{}}}}}}
open("envlock.lock", "w").write(json.dumps(document))
"""
COUNT = """
from envlock.runtime import assertion, collectors
calls = []
ask = collectors._ask
def counting(collect, host):
    calls.append(collect)
    return ask(collect, host)
collectors._ask = counting
def times():
    return len(calls) // len(collectors.COLLECTORS)
"""
"""How often the environment was looked at."""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def captured() -> list[bytes]:
    """Return the lock of the bare interpreter, once it is captured: that of another folder is the same."""
    return []


@pytest.fixture
def run(tmp_path: Path, captured: list[bytes]) -> Run:
    """Return a function that runs code in a folder with a lock of a bare interpreter."""

    site = tmp_path / "site-packages"

    def run(
        code: str, *, how: str = "-c", stdin: str = "", measured: str = MEASURED, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        code = f"{measured}import sys\nsys.path.append({ROOT!r})\nimport envlock\n{code}"
        if how == "-c":
            argv, stdin = ["-c", code], stdin
        elif how == "stdin":
            argv, stdin = ["-"], code
        else:
            (tmp_path / "bin").mkdir(exist_ok=True)
            (tmp_path / "bin" / "script.py").write_text(code, encoding="utf-8")
            argv = ["-m", "script"] if how == "-m" else [str(tmp_path / "bin" / "script.py")]
        if not site.exists():
            distribution(site, "numpy", "1.26.4")
        path = f"{site}:{tmp_path / 'bin'}" if how == "-m" else str(site)
        return subprocess.run(
            [sys.executable, "-S", *argv],
            cwd=tmp_path,
            env={"PYTHONPATH": path, **environ},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    if not captured:
        made = run(LOCK.format(root=ROOT))
        assert (made.returncode, made.stderr) == (0, "")
        captured.append((tmp_path / "envlock.lock").read_bytes())
    (tmp_path / "envlock.lock").write_bytes(captured[0])
    return run


def printed(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


# --- what it says


def test_the_file_of_a_hook_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner, such as PyCharm, is known by the folder alone."""
    hook = ModuleType("sitecustomize")
    hook.__file__ = "/opt/ide/plots/sitecustomize.py"
    monkeypatch.setitem(sys.modules, "sitecustomize", hook)
    findings = [
        Finding("exact", "error", f"python.startup.{path}", message=path, why="w", fix="f", source="s")
        for path in ("sitecustomize", "pth.sitecustomize")
    ]
    report = assertion.mismatch("x.lock", Report(findings, policy="strict")).report
    assert [each.message for each in report.findings] == [
        "sitecustomize (/opt/ide/plots/sitecustomize.py)",
        "pth.sitecustomize",
    ]


def test_nothing_that_python_prints_of_a_refusal_moves_a_terminal(run: Run, tmp_path: Path) -> None:
    name = "no\x1b[31m\u202e\nRuntimeError: fine.lock"
    (tmp_path / name).write_bytes((tmp_path / "envlock.lock").read_bytes())
    start = "envlock.runtime.errors.EnvironmentMismatch: no\\x1b[31m\\u202e\\nRuntimeError: fine.lock: does not match"
    shown = run("envlock.assert_locked()", ENVLOCK_LOCK=name, TF_XLA_FLAGS="\x1b[31m\u202e").stderr.splitlines()
    assert [line for line in shown if not line.isprintable()] == []
    assert [line for line in shown if line.startswith(("envlock.", "RuntimeError"))] == [
        f"{start} under policy strict: 1 fact differs"
    ]
    refused = run("envlock.assert_locked()", ENVLOCK_LOCK=f"x{name}").stderr
    said = "lockfile not found: xno\\x1b[31m\\u202e\\nRuntimeError: fine.lock\nhint: create one with `envlock capture`"
    assert f"\nenvlock.runtime.errors.LockfileError: {said}" in refused


def test_a_match_returns_its_report(run: Run) -> None:
    done = run("report = envlock.assert_locked(); print(report.match, report.policy, report.findings)")
    assert printed(done) == "True strict []\n"


def test_a_mismatch_ends_the_script_with_every_reason(run: Run, tmp_path: Path) -> None:
    done = run("envlock.assert_locked(); print('not reached')", TF_ENABLE_ONEDNN_OPTS="0")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.partition("EnvironmentMismatch: ")[2] == (
        f"{tmp_path}/envlock.lock: does not match under policy strict: 1 fact differs\n"
        "  x environ.TF_ENABLE_ONEDNN_OPTS: locked unset, live 0\n"
        "      why: Turns the oneDNN kernels on or off: 0 against the default changed matmul, convolution gradients, "
        "softmax and trained weights on an AVX-512 host.\n"
        "      fix: Unset TF_ENABLE_ONEDNN_OPTS before the process starts (`envlock run` does).\n"
        f"{RUN}; for other ways: `envlock explain environ.TF_ENABLE_ONEDNN_OPTS`\n"
    )


def test_a_mismatch_can_be_caught_and_read(run: Run) -> None:
    code = """
try:
    envlock.assert_locked()
except RuntimeError as error:
    assert isinstance(error, envlock.EnvironmentMismatch)
    print([(f.where.fact, f.expected, f.actual) for f in error.report.findings], error.exit_code)
"""
    assert printed(run(code, OMP_NUM_THREADS="3")) == "[('environ.OMP_NUM_THREADS', None, '3')] 1\n"


@pytest.mark.parametrize("how", ["-c", "-m", "stdin", "script"])
def test_it_works_however_the_interpreter_is_started(how: str, run: Run) -> None:
    assert printed(run("print(envlock.assert_locked().match)", how=how)) == "True\n"


def test_without_a_file_in_main_the_current_folder_counts(run: Run) -> None:
    code = "import __main__; __main__.__dict__.pop('__file__', 0); print(envlock.assert_locked().match)"
    assert printed(run(code, how="script")) == "True\n"
    assert printed(run("del sys.modules['__main__']; report = envlock.assert_locked(); assert report.match")) == ""


def test_the_scripts_folder_counts_where_the_current_one_has_none(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    code = "import os; os.chdir('/proc'); print(envlock.assert_locked().match)"
    assert printed(run(code, how="script")) == "True\n"
    done = run(code)
    hint = "create one with `envlock capture`, or name one in ENVLOCK_LOCK"
    assert done.stderr.endswith(f"LockfileError: no envlock.lock in /proc\nhint: {hint}\n")


def test_the_lock_of_another_project_is_named_but_not_taken(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in" / "below").mkdir(parents=True)
    (tmp_path / "in" / "pyproject.toml").touch()
    done = run(f"import os; os.chdir({str(tmp_path / 'in' / 'below')!r}); envlock.assert_locked()")
    assert done.stderr.splitlines()[-2:] == [
        f"envlock.runtime.errors.LockfileError: no envlock.lock in {tmp_path}/in/below, or above it in the project "
        f"{tmp_path}/in",
        f"hint: create one with `envlock capture`, or set ENVLOCK_LOCK={tmp_path}/envlock.lock "
        "to use another project's",
    ]


def test_a_current_folder_that_is_gone_is_no_crash(run: Run) -> None:
    code = "import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); {}"
    done = run(code.format("envlock.assert_locked()"))
    assert done.stderr.splitlines()[-2:] == [
        "envlock.runtime.errors.LockfileError: no envlock.lock: the current folder does not exist any more",
        "hint: create one with `envlock capture`, or name one in ENVLOCK_LOCK",
    ]


# --- what it is told


def test_the_argument_beats_the_variable_beats_the_nearest(run: Run, tmp_path: Path) -> None:
    for name in ("named", "variable"):
        lock = json.loads((tmp_path / "envlock.lock").read_text())
        lock["facts"]["environ"]["OMP_NUM_THREADS"] = name
        (tmp_path / name).write_text(json.dumps(lock), encoding="utf-8")
    code = """
from pathlib import Path
for path in ("named", Path("named"), None):
    try:
        print(envlock.assert_locked(path).match)
    except envlock.EnvironmentMismatch as error:
        print(error.report.findings[0].expected)
"""
    assert printed(run(code, ENVLOCK_LOCK="variable")) == "named\nnamed\nvariable\n"
    assert printed(run(code, ENVLOCK_LOCK="")) == "named\nnamed\nTrue\n"


SCRIPT = """
import sys
sys.path.append({root!r})
import envlock
if __name__ == "__main__":
    report = envlock.assert_locked()
    print(report.subject, report.notes)
"""
MAIN = "import envlock; report = envlock.assert_locked(); print(report.subject, report.notes)"


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        (["../b/t.py"], "b"),
        (["{tmp}/b/t.py"], "b"),
        (["link.py"], "b"),
        (["../b/folder"], "b"),
        (["../b/deep/t.py"], "b"),
        (["../without/t.py"], "a"),
        (["-c", MAIN], "a"),
        (["-m", "module"], "a"),
        (["../b/bin/command"], "a"),
        (["../b/lib/site-packages/worker.py"], "a"),
    ],
)
def test_the_lockfile_of_the_script_comes_before_that_of_the_current_folder(
    run: Run, tmp_path: Path, words: list[str], taken: str
) -> None:
    """`python ../b/t.py` in `a/` was judged by the lockfile of `a`, whatever that of `b` said."""
    script = SCRIPT.format(root=ROOT)
    for file in ("b/t.py", "b/folder/__main__.py", "b/deep/t.py", "without/t.py", "b/bin/command", "a/module.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(script)
    (tmp_path / "b/lib/site-packages").mkdir(parents=True)
    (tmp_path / "b/lib/site-packages/worker.py").write_text(script)
    (tmp_path / "a/link.py").symlink_to("../b/t.py")
    lock = tmp_path / "envlock.lock"
    for name in ("a", "b", "without"):
        (tmp_path / name / ".git").mkdir()
    for name in ("a", "b"):
        (tmp_path / name / "envlock.lock").write_bytes(lock.read_bytes())
    lock.unlink()
    argv = [sys.executable, *[word.replace("{tmp}", str(tmp_path)) for word in words]]
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": ROOT}
    done = subprocess.run(argv, cwd=tmp_path / "a", env=environ, capture_output=True, text=True, check=False)
    path = tmp_path / taken / "envlock.lock"
    told = str(path) in done.stdout + done.stderr
    other = str(tmp_path / ("b" if taken == "a" else "a") / "envlock.lock") in done.stdout + done.stderr
    assert (told, other) == (True, False), done.stderr


def test_what_multiprocessing_spawns_has_the_lockfile_of_its_script(run: Run, tmp_path: Path) -> None:
    """Its main module is `-c` while it imports the script."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b/envlock.lock").write_bytes((tmp_path / "envlock.lock").read_bytes())
    (tmp_path / "b/t.py").write_text(f"""
import sys
sys.path.append({ROOT!r})
from envlock.runtime.assertion import locate
print(locate(), flush=True)
def work(): pass
if __name__ == "__main__":
    import multiprocessing
    process = multiprocessing.get_context("spawn").Process(target=work)
    process.start()
    process.join()
""")
    done = subprocess.run(
        [sys.executable, "b/t.py"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [str(tmp_path / "b/envlock.lock")] * 2


def test_the_policy_argument_beats_the_variable_beats_the_locks_own(run: Run) -> None:
    code = """
for policy in ("functional", None):
    try:
        print(envlock.assert_locked(policy=policy).policy)
    except envlock.EnvironmentMismatch as error:
        print("refused", error.report.policy)
"""
    assert printed(run(code, OMP_NUM_THREADS="3", ENVLOCK_POLICY="same-arch")) == "functional\nrefused same-arch\n"
    assert printed(run(code, OMP_NUM_THREADS="3")) == "functional\nrefused strict\n"


@pytest.mark.parametrize(
    ("environ", "code", "message"),
    [
        (
            {"ENVLOCK_MODE": "of"},
            "",
            "UsageError: invalid ENVLOCK_MODE `of`\nhint: choose from: enforce, deep, warn, off\n",
        ),
        (
            {"ENVLOCK_POLICY": "loose"},
            "",
            "UsageError: unknown policy `loose`\nhint: choose from: strict, bits, same-arch, functional\n",
        ),
        (
            {},
            "policy='loose'",
            "UsageError: unknown policy `loose`\nhint: choose from: strict, bits, same-arch, functional\n",
        ),
        (
            {},
            "'gone.lock'",
            "LockfileError: lockfile not found: gone.lock\nhint: create one with `envlock capture`, or name one: "
            "`envlock verify path/to/envlock.lock`\n",
        ),
        (
            {"ENVLOCK_MODE": "warn"},
            "'gone.lock'",
            "LockfileError: lockfile not found: gone.lock\nhint: create one with `envlock capture`, or name one: "
            "`envlock verify path/to/envlock.lock`\n",
        ),
    ],
)
def test_what_does_not_exist_ends_the_script(environ: dict[str, str], code: str, message: str, run: Run) -> None:
    done = run(f"envlock.assert_locked({code}); print('not reached')", **environ)
    assert (done.returncode, done.stdout, done.stderr.endswith(f"envlock.runtime.errors.{message}")) == (1, "", True)


def test_mode_warn_says_all_and_goes_on(run: Run, tmp_path: Path) -> None:
    done = run("print(envlock.assert_locked().match)", ENVLOCK_MODE="warn", OMP_NUM_THREADS="3")
    lines = done.stderr.splitlines()
    assert (done.returncode, done.stdout, len(lines)) == (0, "False\n", 5)
    assert lines[:2] == [
        f"envlock: warning: ENVLOCK_MODE=warn, so this does not stop the program: {tmp_path}/envlock.lock: "
        "does not match under policy strict: 1 fact differs",
        "  x environ.OMP_NUM_THREADS: locked unset, live 3",
    ]


def test_mode_warn_is_silent_when_it_matches(run: Run) -> None:
    for mode in ("warn", "WARN", "Enforce"):
        assert printed(run("print(envlock.assert_locked().match)", ENVLOCK_MODE=mode)) == "True\n"


def test_mode_off_looks_at_nothing_and_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "envlock.lock").write_text("garbage", encoding="utf-8")
    done = run("print(envlock.assert_locked())", ENVLOCK_MODE="off")
    expected = (0, "None\n", "envlock: warning: ENVLOCK_MODE=off, the environment is not verified\n")
    assert (done.returncode, done.stdout, done.stderr) == expected


@pytest.mark.parametrize("mode", ["", "enforce"])
def test_mode_enforce_is_the_default(mode: str, run: Run) -> None:
    done = run("envlock.assert_locked()", ENVLOCK_MODE=mode, OMP_NUM_THREADS="3")
    assert (done.returncode, done.stdout) == (1, "")


def test_without_a_stderr_it_still_goes_on(run: Run) -> None:
    code = "sys.stderr = None; print(envlock.assert_locked())"
    assert printed(run(code, ENVLOCK_MODE="off")) == "None\n"


# --- what it remembers


def test_a_process_looks_once_until_something_changes(run: Run) -> None:
    code = f"""
import os
{COUNT}
seen = []
def look(**named):
    try:
        envlock.assert_locked(**named)
    except envlock.EnvironmentMismatch:
        seen.append("refused")
    seen.append(times())
look(); look(); look()                      # once
look(policy="functional"); look()           # another policy
os.environ["OMP_NUM_THREADS"] = "3"; look() # a variable: refused
look()                                      # and again: a refusal is not remembered
del os.environ["OMP_NUM_THREADS"]; look()   # as before
text = open("envlock.lock").read()
open("envlock.lock", "w").write(text + " "); look()  # the lockfile
sys.modules["tensorflow"] = sys; look()     # TensorFlow was imported
look()
os.mkdir("site-packages/h5py-3.0.dist-info"); look()  # nothing yet
open("site-packages/h5py-3.0.dist-info/METADATA", "w").close(); look()  # a notebook's `!pip install`: refused
print(seen)
"""
    expected = "[1, 1, 1, 2, 2, 'refused', 3, 'refused', 4, 4, 5, 6, 6, 7, 'refused', 8]\n"
    assert printed(run(code)) == expected


LATER = {
    "a package in another folder": "os.mkdir('ff/zz-1.0.dist-info'); open('ff/zz-1.0.dist-info/METADATA', 'w').close()",
    "a module that hides an installed one": "os.mkdir('ff/numpy'); open('ff/numpy/__init__.py', 'w').close()",
    "a folder that becomes a package": "open('gg/numpy/__init__.py', 'w').close()",
    "a package in a zip file": "zipped('zz-1.0.dist-info/METADATA')",
    "a package in the current folder's own entry": "open('numpy.py', 'w').close()",
}


@pytest.mark.parametrize("change", LATER)
def test_what_the_verdict_was_read_from_is_looked_at_again(run: Run, change: str) -> None:
    """The second call looked only at folders named site-packages, and matched."""
    code = f"""
import os, zipfile
def zipped(name):
    with zipfile.ZipFile("x.zip", "w") as archive:
        archive.writestr(name, "")
zipped("nothing.txt")
os.makedirs("ff"); os.makedirs("gg/numpy"); os.makedirs("site-packages/numpy", exist_ok=True)
open("site-packages/numpy/__init__.py", "w").close()
sys.path[:0] = ["", "ff", "gg", "x.zip"]
{LOCK.format(root=ROOT)}
{COUNT}
envlock.assert_locked(); envlock.assert_locked()
looked = times()
{LATER[change]}
try:
    envlock.assert_locked()
    print("matches", looked)
except envlock.EnvironmentMismatch:
    print("refused", looked)
"""
    assert printed(run(code)) == "refused 1\n"


def test_data_is_looked_at_in_each_call(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("1")
    lock = json.loads((tmp_path / "envlock.lock").read_text())
    entry = {"files": 1, "bytes": 1, "listing": "0" * 64, "content": None}
    lock["data"] = {"x.csv": entry}
    (tmp_path / "envlock.lock").write_text(json.dumps(lock), encoding="utf-8")
    code = f"""
{COUNT}
from envlock.runtime import input_data
looks = []
look_at = input_data.look_at
input_data.look_at = lambda *words, **named: looks.append(1) or look_at(*words, **named)
envlock.assert_locked(); envlock.assert_locked()
print(times(), len(looks))
"""
    done = run(code)
    assert (done.stdout, done.stderr.count("warning:")) == ("1 2\n", 1)


def test_a_forked_child_inherits_the_verdict_and_a_spawned_one_looks_again(run: Run) -> None:
    again = f"import sys\nsys.path.append({ROOT!r})\nimport envlock\n{COUNT}\n"
    again += "envlock.assert_locked()\nsys.exit(times())"
    code = f"""
import os
{COUNT}
envlock.assert_locked()
child = os.fork()
if child == 0:
    envlock.assert_locked()
    os._exit(times())
forked = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
argv = ["python", "-S", "-c", {again!r}]
spawned = os.waitstatus_to_exitcode(os.waitpid(os.spawnv(os.P_NOWAIT, sys.executable, argv), 0)[1])
print(forked, spawned)
"""
    assert printed(run(code, measured="")) == "1 1\n"  # to measure a forked child is to set a variable in it


def test_a_forked_child_with_another_variable_looks_again(run: Run) -> None:
    code = """
import os
envlock.assert_locked()
child = os.fork()
if child == 0:
    os.environ["OMP_NUM_THREADS"] = "3"
    try:
        envlock.assert_locked()
        os._exit(0)
    except envlock.EnvironmentMismatch:
        os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert printed(run(code)) == "9\n"


# --- TensorFlow imported before


def test_a_variable_changed_after_tensorflow_was_imported_is_not_believed(run: Run, tmp_path: Path) -> None:
    code = """
import os
sys.modules["tensorflow"] = sys  # stands for the real one: only its name is looked at
os.environ["TF_DETERMINISTIC_OPS"] = "1"
try:
    envlock.assert_locked()
except envlock.EnvironmentMismatch as error:
    finding = error.report.findings[0]
    print(finding.where.fact, finding.severity, finding.actual.code, error.report.exit_code)
"""
    lock = json.loads((tmp_path / "envlock.lock").read_text())
    lock["facts"]["environ"]["TF_DETERMINISTIC_OPS"] = "1"
    (tmp_path / "envlock.lock").write_text(json.dumps(lock), encoding="utf-8")
    assert printed(run(code)) == "environ.TF_DETERMINISTIC_OPS unknown changed-after-start 4\n"
    assert printed(run(code, TF_DETERMINISTIC_OPS="1")) == ""


def test_a_package_installed_meanwhile_is_refused_in_a_new_process(run: Run, tmp_path: Path) -> None:
    distribution(tmp_path / "site", "mine", "1.0")
    code = f"sys.path.append({str(tmp_path / 'site')!r}); envlock.assert_locked()"
    assert "x packages.mine: locked absent, live 1.0" in run(code).stderr


def test_mode_deep_names_a_file_that_is_not_as_recorded(run: Run, tmp_path: Path) -> None:
    """The lock knows the package and its version, and these are as locked."""
    site = tmp_path / "site-packages"
    info = distribution(site, "absl-py", "2.1.0")
    (site / "absl.py").write_text("VALUE = 1\n", encoding="utf-8")
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"VALUE = 1\n").digest()).decode().rstrip("=")
    rows = "".join(f"{info.name}/{each.name},,\n" for each in info.iterdir())
    (info / "RECORD").write_text(f"absl.py,sha256={digest},10\n{rows}{info.name}/RECORD,,\n", encoding="utf-8")
    path = f"sys.path.append({str(site)!r})"
    capture = LOCK.format(root=ROOT).replace("import sys\n", f"import sys\n{path}\n", 1)
    subprocess.run([sys.executable, "-S", "-c", capture], cwd=tmp_path, env={}, check=True, timeout=60)
    code = f"{path}\nprint(envlock.assert_locked().match)"
    assert printed(run(code, ENVLOCK_MODE="deep")) == "True\n"
    (site / "absl.py").write_text("VALUE = 2\n", encoding="utf-8")
    assert printed(run(code)) == "True\n"
    done = run(code, ENVLOCK_MODE="deep")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1:] == ["  x absl.py: different content of the same size"]
