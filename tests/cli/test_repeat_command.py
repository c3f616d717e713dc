"""`envlock repeat` as a shell sees it, with scripts that need numpy only."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envlock.evidence.repeat import repeat as workflow
from envlock.evidence.repeat.repeat import repeat as run
from envlock.reports import render
from tests.conftest import Command
from tests.exhaustive import exhaustive

SCRIPT = """
import itertools
import os
import sys
import numpy as np

count = itertools.count()
print("I said something")

def same():
    for step in range(3):
        yield {"predictions": np.arange(4.0) + step, "weights": [np.ones(3, "f4"), np.zeros(2, "f4")]}

def apart():
    run = next(count)
    for step in range(3):
        yield {"predictions": np.arange(4.0), "weights": [np.ones(3, "f4"), np.full(2, run * 0.5 * (step > 0), "f4")]}

def moves():
    run = next(count)
    return [{"w": np.full(2, run * 0.5 + step)} for step in range(3)]

def grows():
    return {"w": np.zeros(3 + next(count), "f4")}

def draws():
    return {"x": np.random.random(4)}

def hashed():
    return {"x": [hash("a word") / 2.0**63]}

def raises():
    if next(count) == 1:
        raise ValueError("no second time\\nand more")
    return {"x": 1.0}

def dies():
    if next(count) == 1:
        sys.stderr.write("F0000 the library said why\\n")
        sys.stderr.flush()
        os.abort()
    return {"x": 1.0}

def nothing():
    pass

def objects():
    return {"x": {1, 2}}

def drifts():
    run = next(count)
    for step in range(400):
        yield {"w": np.full(2, run * 0.5 * step), "v": np.full(3, float(run * step))}
"""
WHOLE = """
import sys
import envlock

@envlock.recorded
def loss(step):
    return step * float(sys.argv[1])

for step in range(4):
    loss(step)
    envlock.record(weights=[1.0, float(step)])
"""


class Repeat:
    """The command, in a folder with scripts."""

    def __init__(self, envlock: Command) -> None:
        self.envlock = envlock
        self.folder = envlock.folder

    def __call__(self, *args: str) -> subprocess.CompletedProcess[str]:
        done = self.envlock("repeat", *args)
        done.stderr = drop_progress(done.stderr)
        return done


def drop_progress(said: str) -> str:
    """Return what a command says without how far it is, which only a slow machine is told."""
    return re.sub(r"^.*: \d+ %\n", "", said, flags=re.MULTILINE)


@pytest.fixture
def repeat(envlock: Command) -> Repeat:
    (envlock.folder / "mine.py").write_text(SCRIPT, encoding="utf-8")
    (envlock.folder / "whole.py").write_text(WHOLE, encoding="utf-8")
    return Repeat(envlock)


def test_the_same_bits_are_exit_0(repeat: Repeat) -> None:
    done = repeat("mine.py:same", "-n", "3")
    assert (done.returncode, done.stdout, done.stderr) == (0, SAME, "")


def test_runs_that_differ_are_exit_1_and_the_first_step_and_quantity_are_named(repeat: Repeat) -> None:
    done = repeat("mine.py:apart", "-n", "3")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == (
        "not the same: 3 runs gave 3 different results\n"
        "  x first at step 1 (of 3), in weights (weights/1)\n"
        "  quantity  first   differs at    largest distance\n"
        "  weights   step 1  2 of 3 steps  2.00e+00 at step 1\n"
        "step 1\n"
        "  all zero: predictions\n"
        "  weights: sum of the absolute differences (3 different of 3, 1 of 2 arrays)\n"
        "                   0       1       2\n"
        "           0       0 1.0e+00 2.0e+00\n"
        "           1 1.0e+00       0 1.0e+00\n"
        "           2 2.0e+00 1.0e+00       0\n"
        "    largest difference 1.0e+00, 8.4e+06 epsilons of the largest magnitude\n"
        "step 2\n"
        "  all zero: predictions\n"
        "  weights: sum of the absolute differences (3 different of 3, 1 of 2 arrays)\n"
        "                   0       1       2\n"
        "           0       0 1.0e+00 2.0e+00\n"
        "           1 1.0e+00       0 1.0e+00\n"
        "           2 2.0e+00 1.0e+00       0\n"
        "    largest difference 1.0e+00, 8.4e+06 epsilons of the largest magnitude\n"
        f"{NEXT.format('mine.py:apart')}\n"
    )


def test_json_for_programs(repeat: Repeat) -> None:
    done = repeat("mine.py:apart", "-n", "3", "-f", "json")
    report = json.loads(done.stdout)
    shown = report["attachments"]
    assert (done.returncode, report["match"], shown["first"]) == (1, False, {"step": 1, "quantity": "weights"})
    equal = [(each["step"], each["quantity"]) for each in shown["equal"]]
    assert equal == [(1, "predictions"), (2, "predictions")]
    _, matrix = shown["matrices"]
    assert (matrix["step"], matrix["sum"]) == (2, [[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    assert shown["environments"]["runs"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert [each["end"] for each in shown["runs"]] == ["finished"] * 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "start"),
    [
        ("github", "::error "),
        ("junit", '<?xml version="1.0" encoding="utf-8"?>\n<testsuites tests="1" failures="1"'),
        ("sarif", '{\n  "$schema": "https://docs.oasis-open.org/sarif/'),
    ],
)
def test_the_other_formats(form: str, start: str, repeat: Repeat) -> None:
    done = repeat("mine.py:apart", "-n", "2", "-f", form)
    assert (done.returncode, done.stderr, done.stdout[: len(start)]) == (1, "", start)
    assert "first at step 1 (of 3), in weights (weights/1)" in done.stdout


def test_a_whole_script_records_with_its_own_arguments(repeat: Repeat) -> None:
    done = repeat("whole.py", "-n", "2", "-f", "json", "--", "0.5")
    report = json.loads(done.stdout)
    assert (done.returncode, report["match"], report["attachments"]["steps"]) == (0, True, [0, 1, 2, 3])


@exhaustive
@pytest.mark.slow
def test_fresh_processes_have_other_hashes_and_a_seed_fixes_all(repeat: Repeat) -> None:
    assert repeat("mine.py:hashed", "-n", "3").returncode == 0
    assert repeat("mine.py:hashed", "-n", "3", "--fresh").returncode == 1
    assert repeat("mine.py:hashed", "-n", "3", "--fresh", "--seed", "1").returncode == 0
    assert repeat("mine.py:draws", "-n", "2").returncode == 1
    assert repeat("mine.py:draws", "-n", "2", "--seed", "1").returncode == 0
    assert repeat("mine.py:draws", "-n", "2", "--seed", "1", "--fresh").returncode == 0


def test_a_shape_that_changes_is_a_difference_in_words(repeat: Repeat) -> None:
    done = repeat("mine.py:grows", "-n", "2")
    assert done.returncode == 1
    assert done.stdout.splitlines()[5:] == [
        "           0       0       -",
        "           1       -       0",
        "    w has several types or shapes, which have no distance: float32[3], float32[4].",
        NEXT.format("mine.py:grows"),
    ]


def test_after_a_run_that_raises_there_are_no_others(repeat: Repeat) -> None:
    done = repeat("mine.py:raises", "-n", "3")
    assert (done.returncode, done.stderr) == (4, HINTS)
    lines = done.stdout.splitlines()
    assert lines[:2] == [
        "nothing to compare: 1 run finished",
        "  ? run 1 failed: ValueError: no second time (mine.py, line 34)",
    ]
    assert lines[lines.index("traceback") :] == [
        "traceback",
        "  Traceback (most recent call last):",
        '    File "mine.py", line 34, in raises',
        '      raise ValueError("no second time\\nand more")',
        "  ValueError: no second time",
        "  and more",
    ]


SAME = (
    "the same bits in 3 runs, at all 3 steps\n"
    "  quantity     shape     type     steps  digest\n"
    "  predictions  4         float64  3      340c5d300c7f\n"
    "  weights      2 arrays  float32  3      699aa869af57\n"
)
NEXT = (
    "next: `envlock repeat {0} --seed 1` shows whether seeds are the cause; "
    "`envlock diverge {0}` names the operation that differs first, and its line"
)
HINTS = "hint: `--output` shows what the script prints.\n"
LATE = """
import itertools
count = itertools.count()

def stops():
    for step in range(5):
        if step == 3:
            {}["epoch"]
        yield {"loss": step * 0.5}

def parts():
    run = next(count)
    for step in range(5):
        if step == 3 and run == 1:
            raise ValueError("no data")
        yield {"loss": step * 0.5 + (run == 1 and step == 2)}
"""


def test_a_run_that_fails_ends_the_series(repeat: Repeat) -> None:
    (repeat.folder / "late.py").write_text(LATE, encoding="utf-8")
    done = repeat("late.py:stops", "-n", "3")
    assert (done.returncode, done.stderr) == (4, HINTS)
    lines = done.stdout.splitlines()
    assert lines[:3] == [
        "nothing to compare: 0 runs finished",
        "  ? run 0 failed: KeyError: 'epoch' (late.py, line 8)",
        "  ? 2 runs missing: a run that fails ends the series",
    ]
    shown = lines[lines.index("traceback") :]
    assert shown[1] == "  Traceback (most recent call last):"
    assert '    File "late.py", line 8, in stops' in shown
    assert shown[-1] == "  KeyError: 'epoch'"


def test_runs_that_failed_can_differ_before(repeat: Repeat) -> None:
    (repeat.folder / "late.py").write_text(LATE, encoding="utf-8")
    done = repeat("late.py:parts", "-n", "3", "-f", "json", "--save", "kept")
    report = json.loads(done.stdout)
    shown = report["attachments"]
    assert (done.returncode, report["match"], shown["cut"]) == (1, False, True)
    assert (
        report["headline"] == "not the same: 2 runs gave 2 different results, at the 3 steps that all of them finished"
    )
    assert (shown["first"], shown["groups"]) == ({"step": 2, "quantity": "loss"}, [["0"], ["1"]])
    (failure,) = shown["failures"]
    assert (failure["runs"], failure["message"]) == (["1"], "ValueError: no data (late.py, line 15)")
    assert failure["traceback"].splitlines()[-1] == "ValueError: no data"
    assert str(repeat.folder) not in (repeat.folder / "kept" / "runs.jsonl").read_text(encoding="ascii")


MODULE = """
import sys
from .util import scaled

def step():
    return scaled(2.0)

if __name__ == "__main__":
    import envlock
    envlock.record(**scaled(float(sys.argv[1])), main=[float(__package__ == "pkg")])
"""


@pytest.mark.slow
def test_a_module_of_a_package_by_its_name(repeat: Repeat) -> None:
    (repeat.folder / "pkg").mkdir()
    (repeat.folder / "pkg" / "__init__.py").touch()
    (repeat.folder / "pkg" / "util.py").write_text("def scaled(x):\n    return {'x': x * 0.5}\n", encoding="utf-8")
    (repeat.folder / "pkg" / "train.py").write_text(MODULE, encoding="utf-8")
    for form, more in ((["pkg.train:step"], []), (["pkg.train:step"], ["--fresh"]), (["pkg.train"], [])):
        done = repeat(*form, "-n", "2", *more, "--", "4")
        first, _, table = done.stdout.partition("\n")
        assert (form, done.returncode, first) == (form, 0, "the same bits in 2 runs, at 1 step"), done.stderr
        assert "  x         scalar  float64  1      " in table


@pytest.mark.slow
def test_a_run_that_dies_takes_those_after_it_along_unless_they_are_fresh(repeat: Repeat) -> None:
    done = repeat("mine.py:dies", "-n", "3")
    hints = "hint: `--output` shows what the script prints.\nhint: Run it again.\n"
    assert (done.returncode, done.stderr) == (4, hints)
    assert done.stdout == (
        "nothing to compare: 1 run finished\n"
        "  ? run 1 failed: the process was ended by SIGABRT; its last output: F0000 the library said why\n"
        "  ? 1 run missing: the process had crashed\n"
    )
    assert repeat("mine.py:dies", "-n", "2", "--fresh").returncode == 0  # each counts for itself


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "nothing to run or compare"),
        (["mine.py:same", "--compare", "a", "b"], "`--compare` takes no script"),
        (["--compare", "a", "b", "--save", "c"], "`--compare` and `--save` exclude each other"),
        (["--compare", "a", "b"], "cannot read the results in a: No such file or directory"),
        (["mine.py:same", "-n", "1"], "a single run cannot be compared"),
        (["mine.py:same", "--save", "mine.py"], "mine.py exists already"),
        (["none.py"], "the script none.py is missing"),
        (["mine.py:none"], "mine.py has no function none"),
        (["mine.py:nothing"], "mine.py:nothing recorded nothing"),
        (["mine.py:same", "-f", "yaml"], "unknown format `yaml`"),
        (["mine.py:same", "--python", "/none"], "cannot run /none: No such file or directory"),
    ],
)
def test_wrong_use(args: list[str], message: str, repeat: Repeat) -> None:
    done = repeat(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {message}")
    assert "\nhint: " in done.stderr


@pytest.mark.parametrize("words", [("once.py",), ("once.py", "--fresh"), ("once.py:step",)])
def test_what_records_nothing_runs_once(words: tuple[str, ...], repeat: Repeat) -> None:
    text = "from pathlib import Path\n\ndef step():\n    Path('runs').open('a').write('x')\n"
    script = text if ":" in words[0] else f"{text}\nstep()\n"
    (repeat.folder / "once.py").write_text(script, encoding="utf-8")
    done = repeat(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {words[0]} recorded nothing\nhint: call envlock.record(loss=...)")
    assert (repeat.folder / "runs").read_text() == "x"


SETS = """
import os
import envlock
from envlock.runtime import assertion

VERIFIED = {verified}
if VERIFIED:
    assertion._verified[("by this test",)] = None  # as `assert_locked()` on line 1 does
envlock.record(unset=float("TF_FORCE_GPU_ALLOW_GROWTH" not in os.environ), x=1.0)
os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"  # as DeepXDE does when it is imported
with open("pids", "a") as file:
    file.write(f"{os.getpid()}\\n")
"""


@pytest.mark.parametrize("verified", [True, False])
def test_a_program_that_changes_what_it_was_verified_by_runs_in_a_process_each(repeat: Repeat, verified: bool) -> None:
    script = SETS.replace("{verified}", str(verified))
    (repeat.folder / "sets.py").write_text(script, encoding="utf-8")
    done = repeat("sets.py", "-n", "3")
    processes = set((repeat.folder / "pids").read_text().split())
    why = "The program changes TF_FORCE_GPU_ALLOW_GROWTH after it was verified, so each run had a process of its own.\n"
    # What nobody verifies is not started again: its second run finds the variable set, which the report shows.
    assert (done.returncode, len(processes), done.stdout.startswith(why)) == (
        (0, 3, True) if verified else (1, 1, False)
    )


def test_a_script_that_cannot_be_imported(repeat: Repeat) -> None:
    (repeat.folder / "broken.py").write_text("import no_such\n", encoding="utf-8")
    done = repeat("broken.py:step")
    assert (done.returncode, done.stderr) == (
        2,
        "error: broken.py cannot be imported: ModuleNotFoundError: No module named 'no_such' (broken.py, line 1)\n"
        "hint: name the interpreter of an environment that has it: --python .venv/bin/python\n",
    )


def test_what_is_no_number_fails_the_run_with_its_name(repeat: Repeat) -> None:
    done = repeat("mine.py:objects", "-n", "2")
    assert done.returncode == 4
    assert "  ? run 0 failed: ValueError: `x` holds objects, not numbers: set" in done.stdout


@pytest.mark.slow
def test_saved_results_of_two_machines_are_compared(repeat: Repeat) -> None:
    assert repeat("mine.py:apart", "-n", "1", "--save", "a").returncode == 0
    assert repeat("mine.py:apart", "-n", "2", "--save", "b").returncode == 1
    saved = sorted(path.name for path in (repeat.folder / "a").iterdir())
    assert saved == ["arrays", "runs.jsonl"]
    assert str(repeat.folder) not in (repeat.folder / "a" / "runs.jsonl").read_text(encoding="ascii")
    assert sorted(path.name for path in repeat.folder.iterdir()) == ["__pycache__", "a", "b", "mine.py", "whole.py"]
    assert repeat("mine.py:apart", "-n", "1", "--save", "c").returncode == 0
    same = repeat("--compare", "a", "c")
    assert (same.returncode, same.stdout.splitlines()[2]) == (0, "the same bits in 2 runs, at all 3 steps")
    done = repeat("--compare", "a", "b")
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert lines[0].startswith("A: 1 run of mine.py:apart in a (python ")
    assert lines[1].startswith("B: 2 runs of mine.py:apart in b, 2 different results (python ")
    assert lines[3:5] == ["  x first at step 1 (of 3), in weights (weights/1)", "      alike: A0 B0"]
    assert lines[10:14] == [
        "                  A0      B1",
        "          A0       0 1.0e+00",
        "          B1 1.0e+00       0",
        "    the same bits: A0 B0",
    ]


@pytest.mark.slow
def test_pictures(repeat: Repeat) -> None:
    pictures = ("--html", "m.html")
    done = repeat("mine.py:apart", "-n", "3", "--seed", "4", *pictures)
    assert (done.returncode, done.stderr) == (1, "")
    page = (repeat.folder / "m.html").read_text(encoding="utf-8")
    # The largest distance stands once at the scale, too.
    assert (page.count("<table>"), page.count("1.0e+00")) == (2, 2 * (4 + 5) + 1)
    for row in (
        "<th>command</th><td>envlock repeat mine.py:apart --runs 3 --seed 4</td>",
        "<th>seed</th><td>4</td>",
        "<th>lockfile</th><td>none</td>",
    ):
        assert row in page
    assert "<th>processor</th>" in page


def test_beyond_the_limit_bits_are_still_compared(repeat: Repeat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflow, "KEPT", 0)
    report = run(f"{repeat.folder}/mine.py:moves", runs=2)
    assert report.exit_code == 1
    assert render(report).splitlines()[3:4] + render(report).splitlines()[6:] == [
        "  w         step 0  3 of 3 steps  1.00e+00 at step 2, known at 1 of 3 steps",
        "                   0       1",
        "           0       0       -",
        "           1       -       0",
        "    Not all arrays of w fit on the disk, so only their bits were compared.",
        "step 2",
        "  w: sum of the absolute differences (2 different of 2)",
        "                   0       1",
        "           0       0 1.0e+00",
        "           1 1.0e+00       0",
        "    largest difference 5.0e-01, 9.0e+14 epsilons of the largest magnitude",
        NEXT.format("mine.py:moves"),
    ]


def test_what_a_script_says_stays_off_stdout(repeat: Repeat) -> None:
    done = repeat("mine.py:same", "-n", "2", "--output")
    assert (done.stdout, done.stderr) == (SAME.replace("3 runs", "2 runs"), "I said something\n")


SLOW = """
import itertools, os, pathlib, time
count = itertools.count()

def step():
    number = next(count)
    if number == 3:
        pathlib.Path("pid").write_text(str(os.getpid()))
        pathlib.Path("ready").touch()
        time.sleep(600)
    return {"x": number * 0.5}
"""


def slow(repeat: Repeat, *args: str) -> subprocess.Popen[str]:
    """Return the command, of which three runs are over and the fourth takes ten minutes; `pid` has its process."""
    (repeat.folder / "slow.py").write_text(SLOW, encoding="utf-8")
    child = subprocess.Popen(
        [*repeat.envlock.argv, "repeat", "slow.py:step", "-n", "7", *args],
        cwd=repeat.folder,
        env={**os.environ, "TMPDIR": str(repeat.folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    ready = repeat.folder / "ready"
    deadline = time.monotonic() + 120
    while not ready.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert ready.exists()
    return child


def interrupted(repeat: Repeat, *args: str) -> subprocess.CompletedProcess[str]:
    """Run, press Ctrl-C when three runs are over, and return what was said."""
    child = slow(repeat, *args)
    child.send_signal(signal.SIGINT)
    out, errors = child.communicate(timeout=60)
    return subprocess.CompletedProcess([], child.returncode, out, drop_progress(errors))


@pytest.mark.slow
def test_ctrl_c_gives_the_matrix_of_the_finished_runs(repeat: Repeat) -> None:
    done = interrupted(repeat)
    assert (done.returncode, done.stderr) == (130, "")
    assert done.stdout.splitlines() == [
        "not the same: 3 runs gave 3 different results",
        "  x first at step 0 (of 1), in x",
        "  ! 4 runs missing: interrupted",
        "step 0",
        "  x: sum of the absolute differences (3 different of 3)",
        "                   0       1       2",
        "           0       0 5.0e-01 1.0e+00",
        "           1 5.0e-01       0 5.0e-01",
        "           2 1.0e+00 5.0e-01       0",
        "    largest difference 1.0e+00, 4.5e+15 epsilons of the largest magnitude",
        NEXT.format("slow.py:step"),
    ]
    assert not [path for path in Path(repeat.folder).iterdir() if path.name.startswith(".envlock.")]


@pytest.mark.slow
def test_ctrl_c_saves_the_finished_runs(repeat: Repeat) -> None:
    assert interrupted(repeat, "--save", "kept").returncode == 130
    shutil.copytree(repeat.folder / "kept", repeat.folder / "copy")
    done = repeat("--compare", "kept", "copy")
    assert done.stdout.splitlines()[0].startswith("A: 3 runs of slow.py:step in kept, 3 different results (")


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux to end a process with its parent")
def test_when_it_is_killed_nothing_runs_on(repeat: Repeat) -> None:
    child = slow(repeat)
    pid = int((repeat.folder / "pid").read_text(encoding="ascii"))
    assert Path(f"/proc/{pid}/stat").exists()
    child.kill()
    child.communicate(timeout=30)
    deadline = time.monotonic() + 60
    while running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(pid)


def running(pid: int) -> bool:
    """Return whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


@pytest.mark.processes
def test_every_step_that_is_cheap_to_compare_has_a_distance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    # Their digests are more than an argument of a process holds.
    found = run(f"{tmp_path}/train.py:drifts", runs=3).evidence
    assert [(each.step, each.largest) for each in found.distances if each.quantity == "w"] == [
        (step, 2.0 * step) for step in range(1, 400)
    ]
    assert {each.step for each in found.matrices} == {1, 399}
    # The smallest come first.
    monkeypatch.setattr(workflow, "CHEAP", 397 * (3 * 2 * 8 + workflow.CELL * 9))
    found = run(f"{tmp_path}/train.py:drifts", runs=3).evidence
    assert {each.step for each in found.distances if each.quantity == "v"} == {1, 399}
    assert len([each for each in found.distances if each.quantity == "w"]) == 399
