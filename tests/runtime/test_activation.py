"""`activate()` in processes of its own, with a TensorFlow that only writes down what it is asked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import envlock
from envlock.runtime.activation import Activation
from envlock.runtime.release import describe_beyond
from envlock.runtime.report import Report
from envlock.runtime.tables import table
from tests.machines import distribution, write
from tests.measured import MEASURED

pytestmark = pytest.mark.processes

ROOT = Path(envlock.__file__).parents[1]
FAKE = ROOT / "tests" / "fakes" / "fake_tensorflow.py"
CPUS = len(os.sched_getaffinity(0))
THREADS = [f"fixed intra-op threads to {CPUS}", f"fixed inter-op threads to {CPUS}"]
UNFIXED = "Python's hash seed is not fixed, so the order of sets differs from run to run (`envlock run` fixes it)"
LOCK = """
from envlock.runtime.collectors import take_snapshot
found = take_snapshot()
import json
document = {"lock_version": 1, "created_by": "a test", "facts": found.facts, "unavailable": found.unavailable,
            "policy": {"name": "strict", "overrides": {}}}
open("envlock.lock", "w").write(json.dumps(document))
"""
SEEDED = "import sys\ndef seed(number): print('numpy', number, file=sys.__stdout__)"
OPTIONS = {"locked": False, "quiet": True}
DONE = "import tensorflow as tf; print(tf.CALLS, tf.config.threading.counts)"

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Installed = Callable[[str], Run]


@pytest.fixture(scope="module")
def captured() -> dict[str, bytes]:
    """Return the lock of each version that was captured before: that of another folder is the same."""
    return {}


@pytest.fixture
def installed(tmp_path: Path, captured: dict[str, bytes]) -> Installed:
    """Return what installs a TensorFlow of a version, captures, and gives a function that runs code there."""

    def install(version: str) -> Run:
        site = tmp_path / "site"
        distribution(site, "tensorflow", version)
        write(site / "tensorflow", {"__init__.py": FAKE.read_bytes()})
        write(site / "numpy", {"__init__.py": "", "random.py": SEEDED})

        def run(code: str, *flags: str, file: str | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
            code = MEASURED + code
            argv = [*flags, "-c", code]
            if file is not None:
                (tmp_path / file).write_text(code, encoding="utf-8")
                argv = [*flags, file]
            return subprocess.run(
                [sys.executable, "-S", *argv],
                cwd=tmp_path,
                env={"PYTHONPATH": f"{site}:{ROOT}", "PYTHONHASHSEED": "0", **environ},
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )

        if version in captured:
            (tmp_path / "envlock.lock").write_bytes(captured[version])
        else:
            made = run(LOCK, PYTHONHASHSEED="random")
            assert (made.returncode, made.stderr) == (0, "")
            captured[version] = (tmp_path / "envlock.lock").read_bytes()
        return run

    return install


@pytest.fixture
def run(installed: Installed) -> Run:
    return installed("2.21.0")


def printed(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def relock(folder: Path, path: str, value: Any) -> None:
    lock = json.loads((folder / "envlock.lock").read_text())
    section, _, name = path.partition(".")
    lock["facts"][section][name] = value
    (folder / "envlock.lock").write_text(json.dumps(lock), encoding="utf-8")


# --- what it does


def test_it_says_what_it_has_done(run: Run) -> None:
    done = run(f"import envlock; print(envlock.activate(seed=7)); {DONE}")
    assert (done.returncode, done.stderr) == (0, "envlock: TensorFlow 2.21.0 is activated, seed 7\n")
    assert done.stdout.splitlines() == [
        "TensorFlow 2.21.0 is activated, seed 7",
        f"  {THREADS[0]}",
        f"  {THREADS[1]}",
        "  called tf.config.experimental.enable_op_determinism()",
        "  called tf.keras.utils.set_random_seed(7)",
        f"[('enable_op_determinism',), ('set_random_seed', 7)] {{'intra': {CPUS}, 'inter': {CPUS}}}",
    ]


@pytest.mark.parametrize(
    ("version", "variables", "calls", "numpy"),
    [
        ("1.15.5", {"TF_CUDNN_DETERMINISTIC": "1"}, [["set_random_seed of 1.x", 5]], "numpy 5\n"),
        ("1.15.5+nv23.3", {"TF_DETERMINISTIC_OPS": "1"}, [["set_random_seed of 1.x", 5]], "numpy 5\n"),
        ("2.4.4", {"TF_DETERMINISTIC_OPS": "1"}, [["set_seed", 5]], "numpy 5\n"),
        ("2.7.4", {"TF_DETERMINISTIC_OPS": "1", "TF_CUDNN_USE_FRONTEND": "1"}, [["set_random_seed", 5]], ""),
        ("2.8.4", {}, [["enable_op_determinism"], ["set_random_seed", 5]], ""),
        ("2.17.0+nv25.2", {}, [["enable_op_determinism"], ["set_random_seed", 5]], ""),
    ],
)
def test_every_version_gets_its_own_recipe(
    version: str, variables: dict[str, str], calls: list[Any], numpy: str, installed: Installed
) -> None:
    code = """
import envlock, json
envlock.activate(5, quiet=True)
import random, tensorflow as tf
names = [n for n in tf.AT_IMPORT if n.startswith("TF_") and "_THREADS" not in n]
drawn, again = random.random(), random.Random(5).random()
print(json.dumps([{n: tf.AT_IMPORT[n] for n in names}, tf.CALLS, drawn == again, envlock.assert_locked().match]))
"""
    lines = printed(installed(version)(code))
    assert lines.startswith(numpy)
    seen, made, seeded, locked = json.loads(lines[len(numpy) :])
    assert (seen, made, locked) == (variables, calls, True)
    assert seeded == bool(numpy)  # set_random_seed of Keras, which is a fake here, seeds `random` in the others


def test_an_old_tensorflow_without_its_patch_is_told_so(installed: Installed, tmp_path: Path) -> None:
    run = installed("1.15.5")
    code = "import envlock; print(*envlock.activate(5, quiet=True).warnings)"
    patch = "framework-reproducibility"
    warning = f"{patch} is not installed; without its patch the gradient of bias_add is nondeterministic on a GPU"
    assert printed(run(code)) == f"numpy 5\n{warning}\n"
    patch = "def enable_determinism(): print('patched')"
    write(tmp_path / "site" / "fwr13y", {"__init__.py": "", "d9m/__init__.py": "", "d9m/tensorflow.py": patch})
    relocked = run(LOCK)
    assert relocked.returncode == 0
    again = "import envlock; [print(*envlock.activate(5, quiet=True).steps[-4:-3]) for _ in 'ab']"
    called = "called fwr13y.d9m.tensorflow.enable_determinism()\n"
    fixed = f"{THREADS[1]}\n"
    done = run(again)
    assert (done.returncode, done.stderr) == (0, "patched\n")  # not on stdout, which is the program's
    assert done.stdout == f"numpy 5\n{called}numpy 5\n{fixed}"


def test_a_tensorflow_that_is_newer_than_the_recipes_is_told_so(installed: Installed) -> None:
    code = "import envlock; print(*envlock.activate(5, quiet=True).warnings)"
    newer = describe_beyond("TensorFlow", "2.99.0", table("determinism_recipes")["through"])
    assert printed(installed("2.99.0")(code)) == f"{newer}\n"


def test_a_second_call_only_seeds_again(run: Run) -> None:
    code = f"""
import envlock
envlock.activate(1, quiet=True)
import tensorflow as tf
tf.work()
print(envlock.activate(2, quiet=True).seed)
{DONE}
print(envlock.assert_locked().match)
"""
    calls = "('enable_op_determinism',), ('set_random_seed', {})"
    assert printed(run(code)).splitlines() == [
        "2",
        f"[{calls.format(1)}, {calls.format(2)}] {{'intra': {CPUS}, 'inter': {CPUS}}}",
        "True",
    ]


@pytest.mark.parametrize(
    ("argument", "variable", "seed"),
    [("None", None, 42), ("None", "9", 9), ("3", "9", 3), ("None", "", 42), ("0", None, 0)],
)
def test_the_seed(argument: str, variable: str | None, seed: int, run: Run) -> None:
    environ = {} if variable is None else {"ENVLOCK_SEED": variable}
    assert (
        printed(run(f"import envlock; print(envlock.activate({argument}, quiet=True).seed)", **environ)) == f"{seed}\n"
    )


@pytest.mark.parametrize("seed", ["-1", "4294967296", "True", "'7'", "1.0", "''"])
def test_what_is_no_seed_is_wrong_use(seed: str, run: Run) -> None:
    if seed in ("'7'", "''"):  # a word counts in the variable only
        seed = {"'7'": "'seven'", "''": "b''"}[seed]
    done = run(f"import envlock; envlock.activate({seed})")
    assert done.stderr.splitlines()[-2:] == [
        f"envlock.runtime.errors.UsageError: the seed is {seed}",
        "hint: use a whole number from 0 to 4294967295",
    ]


def test_what_is_no_seed_in_the_variable_is_wrong_use(run: Run) -> None:
    done = run("import envlock; envlock.activate()", ENVLOCK_SEED="x")
    assert "UsageError: the seed is 'x'" in done.stderr


# --- the lock


def test_variables_are_set_and_unset_as_the_lock_has_them(run: Run, tmp_path: Path) -> None:
    relock(tmp_path, "environ.TF_ENABLE_ONEDNN_OPTS", "0")
    relock(tmp_path, "environ.HOROVOD_FUSION_THRESHOLD", "0")
    code = """
import envlock
print(envlock.activate(quiet=True))
import tensorflow as tf
print([tf.AT_IMPORT.get(n) for n in ("TF_ENABLE_ONEDNN_OPTS", "HOROVOD_FUSION_THRESHOLD", "NVIDIA_TF32_OVERRIDE")])
print(envlock.assert_locked().match)
"""
    lines = printed(run(code, NVIDIA_TF32_OVERRIDE="1")).splitlines()
    assert lines[1:4] == [
        "  set HOROVOD_FUSION_THRESHOLD=0: as locked",
        "  unset NVIDIA_TF32_OVERRIDE: as locked",
        "  set TF_ENABLE_ONEDNN_OPTS=0: as locked",
    ]
    assert lines[-2:] == ["['0', '0', None]", "True"]


def test_threads_follow_the_lock_where_the_machine_has_others(run: Run, tmp_path: Path) -> None:
    relock(tmp_path, "cpu.intra_op_threads", CPUS + 3)
    relock(tmp_path, "cpu.inter_op_threads", 1)
    code = f"""
import envlock, subprocess, sys
try:
    envlock.assert_locked()
except envlock.EnvironmentMismatch as error:
    print([finding.where.fact for finding in error.report.findings])
envlock.activate(quiet=True)
{DONE}
print(envlock.assert_locked().match)
child = "import sys; sys.path.append(%r); import envlock; print(envlock.assert_locked().match)" % {str(ROOT)!r}
sys.stdout.flush()
subprocess.run([sys.executable, "-S", "-c", child], check=True)
"""
    lines = printed(run(code)).splitlines()
    assert lines[0] == "['cpu.intra_op_threads', 'cpu.inter_op_threads']"
    assert lines[1].endswith(f"{{'intra': {CPUS + 3}, 'inter': 1}}")
    assert lines[2:] == ["True", "True"]


def test_the_lock_wins_over_the_recipe_and_that_is_said(installed: Installed, tmp_path: Path) -> None:
    run = installed("2.7.4")
    relock(tmp_path, "environ.TF_DETERMINISTIC_OPS", "0")
    relock(tmp_path, "environ.TF_CUDNN_USE_AUTOTUNE", "1")
    code = "import envlock, os; print(envlock.activate()); print(os.environ['TF_DETERMINISTIC_OPS'])"
    done = run(code)
    kept = [
        "TF_CUDNN_USE_AUTOTUNE: locked 1, but determinism needs it unset",
        "TF_DETERMINISTIC_OPS: locked 0, but determinism needs 1",
    ]
    assert done.stderr == f"envlock: TensorFlow 2.7.4 is activated, seed 42; {'; '.join(kept)}\n"
    assert done.stdout.splitlines()[-3:] == [*(f"  but {line}" for line in kept), "0"]


def test_another_environment_is_refused_before_anything_is_done(run: Run, tmp_path: Path) -> None:
    relock(tmp_path, "environ.TF_ENABLE_ONEDNN_OPTS", "0")
    distribution(tmp_path / "site", "mine", "1.0")
    code = """
import envlock, os, sys
try:
    envlock.activate()
except envlock.EnvironmentMismatch as error:
    print([finding.where.fact for finding in error.report.findings])
print("tensorflow" in sys.modules, "TF_ENABLE_ONEDNN_OPTS" in os.environ, "ENVLOCK_ADDED" in os.environ)
"""
    assert printed(run(code)) == "['packages.mine']\nFalse False False\n"
    done = run("import envlock; print(envlock.activate(quiet=True).report.match)", ENVLOCK_MODE="warn")
    assert done.stdout == "False\n"
    assert "ENVLOCK_MODE=warn, so this does not stop the program: " in done.stderr
    done = run("import envlock; print(envlock.activate(quiet=True).report)", ENVLOCK_MODE="off")
    assert (done.stdout, done.stderr) == (
        "None\n",
        "envlock: warning: ENVLOCK_MODE=off, the environment is not verified\n",
    )


def test_without_a_lock_one_has_to_say_so(run: Run, tmp_path: Path) -> None:
    shutil.move(tmp_path / "envlock.lock", tmp_path / "other.lock")
    done = run("import envlock; envlock.activate()")
    assert "LockfileError: no envlock.lock in " in done.stderr
    code = f"import envlock; a = envlock.activate(locked=False, quiet=True); print(a.report, *a.steps); {DONE}"
    assert printed(run(code)).splitlines() == [
        "None called tf.config.experimental.enable_op_determinism() called tf.keras.utils.set_random_seed(42)",
        "[('enable_op_determinism',), ('set_random_seed', 42)] {'intra': 0, 'inter': 0}",
    ]
    done = run("import envlock; envlock.activate(path='other.lock', locked=False)")
    assert "UsageError: lockfile other.lock is named, but `locked` is False\n" in done.stderr
    assert (
        printed(run("import envlock; print(envlock.activate(path='other.lock', quiet=True).report.match)")) == "True\n"
    )


# --- too late


def test_a_variable_that_tensorflow_has_read_is_too_late(installed: Installed, tmp_path: Path) -> None:
    run = installed("2.7.4")
    code = "import sys\nimport tensorflow as tf\nimport envlock\n\nenvlock.activate()\n"
    done = run(code, file="train.py")
    assert done.returncode == 1
    script = tmp_path / "train.py"
    assert done.stderr.splitlines()[-2:] == [
        "envlock.runtime.errors.TooLateError: envlock.activate() is too late: TensorFlow is imported, and "
        "TF_CUDNN_USE_FRONTEND must be 1 before it is imported (this TensorFlow needs it); "
        "TF_DETERMINISTIC_OPS must be 1 before it is imported (this TensorFlow needs it)",
        f"hint: move `envlock.activate()` (now line 5 of {script}) above line 2 of {script}, which imports TensorFlow",
    ]
    done = run(code, TF_CUDNN_USE_FRONTEND="1", TF_DETERMINISTIC_OPS="1")
    assert (done.returncode, done.stderr) == (0, "envlock: TensorFlow 2.7.4 is activated, seed 42\n")


def test_a_tensorflow_that_has_begun_is_too_late(run: Run) -> None:
    done = run("import tensorflow as tf; tf.work(); import envlock; envlock.activate()")
    assert done.stderr.splitlines()[-2:] == [
        "envlock.runtime.errors.TooLateError: envlock.activate() is too late: TensorFlow is imported, and it has "
        "started computing, so its threads and results can no longer be changed",
        "hint: move `envlock.activate()` above every import of TensorFlow, best to the first lines of the program",
    ]
    done = run(
        "import tensorflow as tf; tf.work(); import envlock; print(envlock.activate().warnings)", ENVLOCK_MODE="warn"
    )
    assert (done.returncode, done.stderr.count("so this does not stop the program")) == (
        0,
        2,
    )  # lateness, and threads that it keeps
    assert "too late: it has started computing" in done.stdout


def test_a_tensorflow_that_is_only_imported_is_not_too_late(run: Run) -> None:
    done = run(f"import tensorflow; import envlock; envlock.activate(quiet=True); {DONE}")
    assert printed(done).endswith(f"{{'intra': {CPUS}, 'inter': {CPUS}}}\n")
    done = run(f"import tensorflow; import envlock; envlock.activate(**{OPTIONS}); {DONE}")
    assert printed(done).endswith("{'intra': 0, 'inter': 0}\n")  # asking whether it has begun leaves no trace


def test_what_numpy_has_read_is_left_and_so_refused(run: Run, tmp_path: Path) -> None:
    relock(tmp_path, "environ.OMP_NUM_THREADS", "1")
    assert printed(run("import envlock; print(envlock.activate(quiet=True).steps[0])")) == (
        "set OMP_NUM_THREADS=1: as locked\n"
    )
    done = run("import numpy, envlock; envlock.activate()")
    assert "  x environ.OMP_NUM_THREADS: locked 1, live unset\n" in done.stderr


def test_a_variable_changed_after_activation_is_found_as_before(run: Run, tmp_path: Path) -> None:
    code = """
import envlock, os
envlock.activate(quiet=True)
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
for again in (envlock.assert_locked, envlock.activate):
    try:
        again()
    except envlock.EnvlockError as error:
        print(type(error).__name__, str(error).splitlines()[0])
"""
    undecided = "cannot decide under policy strict: 1 fact could not be collected"
    assert printed(run(code)).splitlines() == [
        f"EnvironmentMismatch {tmp_path}/envlock.lock: {undecided}",
        "TooLateError envlock.activate() is too late: TensorFlow is imported, and TF_ENABLE_ONEDNN_OPTS must be "
        "unset before it is imported (as locked)",
    ]


@pytest.mark.parametrize(
    ("flags", "seed", "fixed"), [((), "0", True), ((), "7", True), ((), "random", False), (("-E",), "7", False)]
)
def test_a_hash_seed_that_is_not_fixed_is_told(flags: tuple[str, ...], seed: str, fixed: bool, run: Run) -> None:
    path = [str(ROOT), "site"]  # with -E nobody looks at PYTHONPATH
    code = f"import sys; sys.path += {path}; import envlock; print(*envlock.activate(**{OPTIONS}).warnings)"
    assert printed(run(code, *flags, PYTHONHASHSEED=seed)) == ("\n" if fixed else UNFIXED + "\n")


def test_a_back_end_that_no_call_reaches_is_told(run: Run, tmp_path: Path) -> None:
    distribution(tmp_path / "site", "keras", "3.12.0")
    code = "import envlock; print(*envlock.activate(locked=False, quiet=True).warnings)"
    told = "Keras computes with jax, which no call of TensorFlow's reaches\n"
    assert printed(run(code, KERAS_BACKEND="jax")) == told
    assert printed(run(code, KERAS_BACKEND="tensorflow")) == "\n"


def test_setting_the_hash_seed_inside_does_not_count(run: Run) -> None:
    code = (
        "import os; os.environ['PYTHONHASHSEED'] = '0'; import envlock; print(*envlock.activate(quiet=True).warnings)"
    )
    assert printed(run(code, PYTHONHASHSEED="")) == UNFIXED + "\n"


# --- what goes wrong


def test_no_tensorflow(run: Run, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "site" / "tensorflow")
    done = run("import envlock; envlock.activate()")
    assert "FactError: TensorFlow is not installed\nhint: install it, or call envlock.assert_locked()" in done.stderr


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "import no_such_module",
            "FactError: TensorFlow cannot be imported: ModuleNotFoundError: No module named 'no_such_module'",
        ),
        ("raise RuntimeError('no\\nmore')", "FactError: TensorFlow cannot be imported: RuntimeError: no"),
        (
            "import types; config = keras = types.SimpleNamespace()",
            "FactError: tf.config.experimental.enable_op_determinism(), which TensorFlow 2.21.0 needs, failed: "
            "ModuleNotFoundError: No module named 'tensorflow.config'",
        ),
    ],
)
def test_a_tensorflow_that_does_not_do_what_it_should(source: str, message: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "site" / "tensorflow" / "__init__.py").write_text(source, encoding="utf-8")
    done = run("import envlock; envlock.activate(locked=False)")
    assert f"{message}\nhint: run `envlock doctor` to find the cause\n" in done.stderr


def test_what_was_done_cannot_be_changed() -> None:
    report = Report([], policy="strict")
    done = Activation("2.21.0", 1, report, ["a step"], ["a warning"])
    assert (done.tensorflow, done.seed, done.report, done.steps, done.warnings) == (
        *("2.21.0", 1, report),
        ("a step",),
        ("a warning",),
    )
    with pytest.raises(AttributeError, match=r"^an Activation is read-only: seed cannot be changed$"):
        done.seed = 2
    with pytest.raises(AttributeError, match=r"^an Activation is read-only: seed cannot be removed$"):
        del done.seed
    function, values = done.__reduce__()
    assert str(function(*values)) == str(done) == "TensorFlow 2.21.0 is activated, seed 1\n  a step\n  but a warning"
