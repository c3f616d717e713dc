"""The result of `make testgpu`: what becomes of it in the tables, what it must not hold, and the whole way on a CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envlock.data.determinism import SourceTable, load_source_table
from tests.ground import ROOT

sys.path.append(str(ROOT / "tools"))

import gpu_experiments
import gpu_result
import gpu_rows

from tests.exhaustive import exhaustive

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = ROOT / "envlock/data/determinism_sources.toml"
UUID = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
A, B = "0" * 16, "1" * 16


def result(*, stand_in: bool = False, deterministic: dict[str, int] | None = None, **more: Any) -> gpu_result.Result:
    """Return a result of experiment 2: 2 results in 100 calls, and with op determinism what is given."""
    case = {
        "name": "off",
        "program": "scatter_nd",
        "rows": ["scatter-nd"],
        "environ": {},
        "determinism": False,
        "device": "GPU",
        "processes": 1,
        "calls": 100,
        "digests": {A: 60, B: 40},
        "errors": [],
    }
    on = {
        **case,
        "name": "on",
        "determinism": True,
        "digests": {A: 100} if deterministic is None else deterministic,
        **more,
    }
    machine = {
        "tensorflow": "2.21.0",
        "keras": "3.15.1",
        "python": "3.11.2",
        "system": "Linux 6.1",
        "processor": "EPYC",
        "gpus": ["NVIDIA H100 80GB HBM3, compute capability 9.0"],
        "driver": "590.1",
        "cuda": "12.5.1",
        "cudnn": "9",
    }
    return gpu_result.Result.model_validate(
        {
            "stand_in": stand_in,
            "date": "2026-11-22",
            "machine": machine,
            "nvml": None,
            "canary": {},
            "repeat": {},
            "experiments": [{"number": 2, "title": "rows that promise equal bits", "cases": [case, on]}],
            "zoo": [],
            "cpu_against_gpu": {},
        }
    )


@pytest.mark.slow
def test_a_result_becomes_a_line_of_its_row_and_is_on_the_page() -> None:
    found = gpu_rows.rows(result())
    line = {
        "on": "NVIDIA H100 80GB HBM3, compute capability 9.0, driver 590.1, cuDNN 9",
        "tensorflow": "2.21.0",
        "date": "2026-11-22",
        "off": "2 results in 100 calls",
        "deterministic": "1 result in 100 calls",
    }
    assert found == {"scatter-nd": line}
    once = gpu_rows.enter(TABLE.read_text(encoding="utf-8"), found)
    table = SourceTable.model_validate(tomllib.loads(once))
    measured = {row.id: [each.model_dump() for each in row.measured] for row in table.source if row.measured}
    assert measured["scatter-nd"] == [line]
    assert gpu_rows.enter(once, found) == once
    newer = {"scatter-nd": {**line, "tensorflow": "2.22.0"}}
    twice = SourceTable.model_validate(tomllib.loads(gpu_rows.enter(once, newer)))
    assert {row.id: len(row.measured) for row in twice.source}["scatter-nd"] == 2
    assert all(len(row) < 400 for row in once.splitlines() if row.startswith("  {on"))


def test_promises_that_do_not_hold_are_named() -> None:
    assert gpu_rows.broken(result()) == []
    several = "scatter-nd: not equal under op determinism (2 results in 100 calls)"
    assert gpu_rows.broken(result(deterministic={A: 99, B: 1})) == [several]
    assert gpu_rows.broken(result(stand_in=True, deterministic={A: 99, B: 1})) == []
    refused = "scatter-nd: not equal under op determinism (raises UnimplementedError: no)"
    assert gpu_rows.broken(result(deterministic={}, errors=["UnimplementedError: no"])) == [refused]


def test_what_a_stand_in_measured_enters_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "gpu-result.json"
    file.write_text(result(stand_in=True).model_dump_json())
    before = TABLE.read_bytes()
    monkeypatch.setattr(sys, "argv", ["gpu_rows.py", str(file)])
    with pytest.raises(SystemExit) as caught:
        gpu_rows.main()
    assert caught.value.code == f"error: {file} was measured on a CPU in place of a GPU: it says nothing of one"
    assert TABLE.read_bytes() == before


def test_nothing_private_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "node-of-ann")
    monkeypatch.setattr("getpass.getuser", lambda: "ann-smith")
    text = f"ann-smith on node-of-ann: {UUID} at 0000:0d:00.0 failed in /home/ann/model/train.py"
    assert gpu_result.redacted(text) == "<redacted> on <redacted>: <redacted> at <redacted> failed in <path>"
    assert gpu_result.private(gpu_result.redacted(text)) == []
    assert set(gpu_result.private(text)) == {
        *("the name node-of-ann", "the name ann-smith"),
        *(f"an identity {each}" for each in (UUID, "0000:0d:00.0")),
    }
    assert gpu_result.private("GPU-00000000-0000-4000-8000-000000000000") == []  # as profiles have them


def test_each_row_that_promises_something_on_a_gpu_has_a_program() -> None:
    rows = {row.id: row for row in load_source_table().source}
    assert {rows[each].latest for each in gpu_experiments.RAISES} == {"raises"}
    assert {rows[each].latest for each in gpu_experiments.FIXED} == {"fixed"}
    wanted = {
        row.id
        for row in rows.values()
        if row.platform == "gpu" and row.latest in ("fixed", "raises") and row.is_active("2.21.0")
    }
    named = {row for cases in gpu_experiments.EXPERIMENTS.values() for case in cases for row in case.rows}
    assert wanted - named == set()
    assert named - rows.keys() == set()
    assert len(gpu_experiments.EXPERIMENTS) == 11


def test_until_it_was_run_pages_say_that_gpus_were_not_measured() -> None:
    measured = any(row.measured for row in load_source_table().source)
    pages = [
        "concepts/evidence",
        *(f"reference/{name}" for name in ("activation", "determinism", "diverge", "images", "lint", "policies")),
    ]
    texts = {page: " ".join((ROOT / f"docs/{page}.md").read_text(encoding="utf-8").split()) for page in pages}
    assert [page for page, text in texts.items() if "from sources, not measured" not in text] == []
    assert ("from sources, not measured: `make testgpu`" in texts["reference/determinism"]) is not measured


@exhaustive
@pytest.mark.tensorflow
def test_every_program_runs(tensorflow_python: Path) -> None:
    """In one process, on a CPU: a slip in one of them would cost the time of somebody's GPU."""
    code = f"""
import sys
sys.path.insert(0, {str(ROOT / "tools")!r})
sys.argv = [""]
import gpu_programs, tensorflow as tf
parts = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], parts)
for name, program in gpu_programs.PROGRAMS.items():
    assert len(gpu_programs.digest(program())) == 16, name
print(*gpu_programs.PROGRAMS)
"""
    done = subprocess.run([tensorflow_python, "-c", code], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    programs = {case.program for cases in gpu_experiments.EXPERIMENTS.values() for case in cases}
    assert programs == set(done.stdout.split())


@pytest.mark.tensorflow
@pytest.mark.exhaustive
def test_the_whole_way_with_a_cpu_in_place_of_a_gpu(tensorflow_python: Path, tmp_path: Path) -> None:
    output, table = tmp_path / "gpu-result.json", tmp_path / "table.toml"
    command: list[str | Path] = [
        sys.executable,
        "tools/testgpu.py",
        "--python",
        tensorflow_python,
        "--output",
        output,
        "--quick",
        "--sample",
    ]
    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3600, check=False)
    assert refused.stderr.startswith("error: TensorFlow ")
    assert refused.stderr.splitlines()[0].endswith(" sees no GPU")
    assert not output.exists()
    done = subprocess.run(
        [*command, "--stand-in", "cpu"], cwd=ROOT, capture_output=True, text=True, timeout=3600, check=False
    )
    assert done.returncode == 0, done.stderr
    found = gpu_result.Result.model_validate(json.loads(output.read_bytes()))
    assert (found.stand_in, found.failures) == (True, ())
    assert [each.number for each in found.experiments] == list(range(1, 12))
    assert found.experiments[10].not_run == ("matmul, on the slice: a CPU has no slices",)
    assert [len(each.cases) for each in found.experiments[:10]] == [1, 1, 1, 1, 1, 1, 2, 1, 1, 1]
    assert found.repeat.keys() == {"as it is", "op determinism"}
    assert found.cpu_against_gpu["headline"]
    assert [(each.program, each.mark) for each in found.zoo] == [("scatter", "right")]
    assert "matmul" in found.canary["cpu-onednn"]
    table.write_bytes(TABLE.read_bytes())
    rows: list[str | Path] = [sys.executable, "tools/gpu_rows.py", output, "--table", table]
    entered = subprocess.run(rows, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert entered.stdout.splitlines()[0].startswith(f"{output}: ")
    read = SourceTable.model_validate(tomllib.loads(table.read_text(encoding="utf-8")))
    assert any(row.measured for row in read.source)
