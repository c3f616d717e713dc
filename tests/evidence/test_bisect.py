"""Which difference moved the bits: the program really runs, in processes of its own, over variables and overlays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from envlock.evidence.bisect import bisect as workflow
from envlock.evidence.bisect.bisect import bisect
from envlock.evidence.bisect.bisection import Cause, FirstOperation, list_differences
from envlock.evidence.diverge import two_traces
from envlock.guest.target import Target
from envlock.lock.document import validate
from envlock.lock.models import Lockfile
from envlock.reports.progress import SILENT
from envlock.runtime.errors import UsageError
from envlock.runtime.finding_place import Where
from envlock.runtime.report import Finding, Report
from tests.locks import document

pytestmark = pytest.mark.processes

PROGRAM = """
import os

def one():
    return float(os.environ.get("TF_XLA_FLAGS") == "b")

def both():
    return float(os.environ.get("TF_XLA_FLAGS") == "b" and os.environ.get("XLA_FLAGS") == "b")

def none():
    return 1.0

def threads():
    return float(os.environ.get("TF_NUM_INTRAOP_THREADS", 0))

def varies():
    return float(int.from_bytes(os.urandom(4), "little"))

def fails():
    raise SystemExit("no")

def quiet():
    pass

def processor():
    with open("/proc/cpuinfo") as file:
        return float("Nehalem" in file.read())

def asserted():
    return float(os.environ.get("ENVLOCK_MODE") == "off")
"""
NAMES = ("TF_XLA_FLAGS", "XLA_FLAGS", "TF_CUDNN_DETERMINISTIC", "CUDA_VISIBLE_DEVICES")


def lock(value: str | None, **facts: Any) -> Lockfile:
    variables = dict.fromkeys(NAMES, value)
    return validate(document(facts={"environ": variables, "packages": {}, **facts}), "a.lock")


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    return str(tmp_path / "train.py")


def search(program: str, name: str, folder: Path, **more: Any) -> Any:
    return bisect(lock(None), lock("b"), f"{program}:{name}", **more)


def test_one_variable_of_four(program: str, tmp_path: Path) -> None:
    report = search(program, "one", tmp_path)
    assert report.evidence.smallest == (Cause("environ.TF_XLA_FLAGS", None, "b"),)
    assert (report.exit_code, report.headline) == (
        1,
        f"1 of 4 differences turns the first bits into the second: {report.evidence.runs} runs of train.py:one",
    )


TOGETHER = """
import os
if (os.environ.get("TF_XLA_FLAGS") == "b") != (os.environ.get("XLA_FLAGS") == "b"):
    raise AttributeError("`np.complex_` was removed in the NumPy 2.0 release")
def step():
    return float(os.environ.get("XLA_FLAGS") == "b")
"""


def test_a_mixture_that_cannot_be_imported_is_a_run_that_failed(tmp_path: Path) -> None:
    """As scripts that import TensorFlow at their top: its version and that of NumPy work together or not at all."""
    (tmp_path / "train.py").write_text(TOGETHER, encoding="utf-8")
    report = search(str(tmp_path / "train.py"), "step", tmp_path)
    assert [cause.path for cause in report.evidence.smallest] == ["environ.TF_XLA_FLAGS", "environ.XLA_FLAGS"]
    assert report.exit_code == 1


def test_a_side_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM + "\nassert os.environ.get('XLA_FLAGS') != 'b'\n", encoding="utf-8")
    report = search(str(tmp_path / "train.py"), "one", tmp_path)
    assert (report.exit_code, "the second side cannot be run" in report.findings[0].message) == (4, True)


def test_a_function_that_is_not_there_is_misuse(program: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        search(program, "nowhere", tmp_path)


def test_two_that_only_act_together(program: str, tmp_path: Path) -> None:
    report = search(program, "both", tmp_path)
    assert [cause.path for cause in report.evidence.smallest] == ["environ.TF_XLA_FLAGS", "environ.XLA_FLAGS"]
    assert report.findings[0].message == (
        "environ.TF_XLA_FLAGS: none -> b: this moves the bits, together with the others that are named"
    )


def test_a_number_of_threads_is_put_by_its_variable(program: str, tmp_path: Path) -> None:
    """Also where no variable is locked: then TensorFlow has taken it from the processor of each machine."""
    four, eight = ({"intra_op_threads": number, "inter_op_threads": 2} for number in (4, 8))
    for a, b in ((None, None), ("4", "8"), (None, "8")):
        before = validate(document(facts={"environ": {"TF_NUM_INTRAOP_THREADS": a}, "packages": {}, "cpu": four}), "a")
        after = validate(document(facts={"environ": {"TF_NUM_INTRAOP_THREADS": b}, "packages": {}, "cpu": eight}), "b")
        report = bisect(before, after, f"{program}:threads")
        assert report.evidence.differences.out_of_reach == ()
        assert report.evidence.smallest == (Cause("cpu.intra_op_threads", "4", "8"),)
        assert (report.exit_code, report.headline.partition(":")[0]) == (
            1,
            "1 of 1 difference turns the first bits into the second",
        )


def test_no_difference_moves_the_bits(program: str, tmp_path: Path) -> None:
    report = search(program, "none", tmp_path)
    assert (report.exit_code, report.findings) == (0, [])
    assert report.headline == "4 differences move no bit: 4 runs of train.py:none"
    alone = bisect(lock(None, environ={}), lock("b", environ={"XLA_FLAGS": "b"}), f"{program}:none")
    assert alone.headline == "1 difference moves no bit: 4 runs of train.py:none"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("varies", "the first side gives other bits when it runs again"),
        ("fails", "the first side cannot be run: train.py:fails failed: the script exited with code no"),
    ],
)
def test_what_cannot_be_compared_is_unknown(program: str, tmp_path: Path, name: str, message: str) -> None:
    report = search(program, name, tmp_path)
    assert (report.exit_code, [finding.message for finding in report.findings]) == (4, [message])


def test_the_programs_own_assertion_does_not_refuse_our_runs(program: str, tmp_path: Path) -> None:
    assert search(program, "asserted", tmp_path).exit_code == 0


def test_what_cannot_be_put_here_is_said_and_is_no_yes(program: str, tmp_path: Path) -> None:
    one, other = ({"cpu": {"vendor": vendor}} for vendor in ("one", "other"))
    report = bisect(lock("b", **one), lock("b", **other), f"{program}:none")
    assert (report.exit_code, [finding.message for finding in report.findings]) == (
        4,
        ["cpu.vendor differs and cannot be put on this machine"],
    )


def test_a_program_that_records_nothing_is_no_evidence(program: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="quiet recorded nothing"):
        search(program, "quiet", tmp_path)


def test_two_equal_lockfiles_have_nothing_to_search(program: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^the two lockfiles do not differ\n"):
        bisect(lock("b"), lock("b"), f"{program}:none")


def test_a_package_that_cannot_be_taken_away_and_a_hashed_value_are_out_of_reach() -> None:
    package = {"packages": {"rich": {"version": "13.7.0"}, "new": {"version": "1"}}}
    secret = {"environ": {"XLA_FLAGS": "sha256:0a"}}
    found = list_differences({**package, "environ": {}}, {"packages": {}, **secret}, package)
    assert found.causes == ()
    assert found.out_of_reach == ("packages.new.version", "packages.rich.version", "environ.XLA_FLAGS")
    found = list_differences({"packages": {}}, package, {"packages": {}})
    assert [cause.path for cause in found.causes] == ["packages.new.version", "packages.rich.version"]


def trace(name: str) -> Report[Any]:
    """Return what two traces say whose operation differs."""
    where = Where("", file="train.py", line=7)
    return Report(
        [Finding("operation", "error", where, message=f"{name} gave other bits", why="w", fix="f", source="s")],
        command="x",
    )


@pytest.mark.parametrize(
    ("report", "found", "reason"),
    [
        (trace("MatMul"), "train.py:7: MatMul gave other bits", None),
        (Report([], command="x"), None, "run eagerly, all operations have equal bits"),
        (UsageError("TensorFlow shows no operation", hint=""), None, "TensorFlow shows no operation"),
    ],
)
def test_the_first_operation_is_that_of_two_traces(
    report: Any, found: str | None, reason: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traced: list[Mapping[str, str]] = []
    monkeypatch.setattr(workflow, "write_trace", lambda request, file, say: traced.append(request.environ))

    def compare(a: str, b: str) -> Any:
        assert (Path(a).name, Path(b).name) == ("a.trace", "b.trace")
        if isinstance(report, Exception):
            raise report
        return report

    monkeypatch.setattr(two_traces, "report", compare)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cause = Cause("environ.OMP_NUM_THREADS", "1", "2")
    bench = workflow.Bench(Target(Path("a.py"), "f"), 0, None, tmp_path, {}, {}, SILENT)
    assert bench.find_first(frozenset([cause])) == FirstOperation(found, reason)
    assert [environ.get("OMP_NUM_THREADS") for environ in traced] == [None, "2"]
    assert all(environ["ENVLOCK_MODE"] == "off" for environ in traced)


def test_a_variable_that_would_have_to_be_unset_is_not_traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    bench = workflow.Bench(Target(Path("a.py"), "f"), 0, None, tmp_path, {}, {}, SILENT)
    cause = Cause("environ.OMP_NUM_THREADS", None, "2")
    assert bench.find_first(frozenset([cause])).reason == "OMP_NUM_THREADS would have to be unset"
