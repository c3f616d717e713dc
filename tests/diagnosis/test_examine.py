"""From machines of files and from locks to what the rules look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.diagnosis import examine
from envlock.diagnosis.checks import diagnose
from envlock.diagnosis.examine import LEAST, LIBRARY, build_from_live, build_from_lock, find_missing_flags
from envlock.lock.document import validate
from envlock.runtime.collectors import Snapshot, take_snapshot
from tests.diagnosis.test_fatbin import TWO, library
from tests.locks import document
from tests.machines import BUILD_INFO_CPU_2_21, complete, distribution, machine, write

SOUND = {"PYTHONHASHSEED": "0"}


def site_of(folder: Path, version: str, **packages: str) -> Path:
    """Return site-packages with a TensorFlow for CPUs and other distributions."""
    site = folder / "site-packages"
    for name, number in {"tensorflow": version, **packages}.items():
        distribution(site, name, number)
    write(site / "tensorflow", {"__init__.py": "", "python/platform/build_info.py": BUILD_INFO_CPU_2_21})
    return site


def test_a_clean_machine_of_files(tmp_path: Path) -> None:
    site = site_of(tmp_path, "2.18.1", numpy="2.0.2", protobuf="5.29.5", keras="3.12.0")
    host = machine(tmp_path / "root", environ=SOUND, site=site)
    found = take_snapshot(host)
    found.facts["python"]["version"] = "3.11.7"
    assert [finding.message for finding in diagnose(build_from_live(found, host.environ))] == []


def test_a_broken_one(tmp_path: Path) -> None:
    site = site_of(tmp_path, "2.15.1", numpy="2.2.6", protobuf="4.25.8", keras="2.15.0")
    wrong = {"TF_DETERMINISTIC_OPS": "yes", "TF_DETERMINSTIC_OPS": "1", "KERAS_MAX_EPOCHS": "2", "XLA_FLAGS": "/none"}
    host = machine(tmp_path / "root", environ={**SOUND, **wrong}, site=site)
    found = take_snapshot(host)
    found.facts["python"]["version"] = "3.11.7"
    assert [finding.message for finding in diagnose(build_from_live(found, host.environ))] == [
        "numpy is 2.2.6, and TensorFlow 2.15.1 needs <2.0.0,>=1.23.5",
        "TF_DETERMINISTIC_OPS is yes",
        "XLA_FLAGS does not start with --, and no file of that name exists",
        "'TF_DETERMINSTIC_OPS' is set, and nothing reads this name",
        "KERAS_MAX_EPOCHS is set",
    ]


def test_a_variable_changed_after_the_start_is_not_judged_but_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = complete(tmp_path, {**SOUND, "TF_DETERMINISTIC_OPS": "yes"})
    host._start = {**host.environ, "TF_DETERMINISTIC_OPS": "0"}
    monkeypatch.setattr(type(host), "has_imported", lambda self, name: name == "tensorflow")
    found = diagnose(build_from_live(take_snapshot(host), host.environ))
    about = [each.rule for each in found if each.where.fact == "environ.TF_DETERMINISTIC_OPS"]
    assert about == ["variable-too-late"]


def test_of_a_lock_only_what_it_holds(tmp_path: Path) -> None:
    host = complete(tmp_path, {"TF_DETERMINSTIC_OPS": "1"})
    found = take_snapshot(host)
    locked = build_from_lock(validate(document(facts=found.facts, unavailable=found.unavailable), "envlock.lock"))
    assert locked.others is None
    assert "TF_CPP_MIN_LOG_LEVEL" not in locked.variables
    assert locked.variables["TF_ENABLE_ONEDNN_OPTS"] == "1"
    assert (locked.facts, locked.unavailable) == (found.facts, found.unavailable)


@pytest.fixture
def tensorflow(tmp_path: Path) -> Path:
    """Return a package folder with one library that registers two flags."""
    names = b"\0xla_first\0tf_xla_second\0"
    write(tmp_path / "tensorflow", {"libtensorflow_cc.so.2": names + bytes(LEAST), "_small.so": b"xla_third\0"})
    return tmp_path / "tensorflow"


def test_flags_are_looked_up_in_the_libraries(tensorflow: Path) -> None:
    asked = ["--xla_first", "--tf_xla_second", "--xla_third", "--xla_fir"]
    assert find_missing_flags(tensorflow, asked) == ["--xla_fir", "--xla_third"]


def test_without_libraries_no_flag_is_called_unknown(tmp_path: Path) -> None:
    assert find_missing_flags(tmp_path, ["--xla_first"]) == []
    assert find_missing_flags(None, ["--xla_first"]) == []


def test_the_ptx_of_the_library_counts_and_not_the_toolkit_of_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PTX of ISA 8.3 asks for a driver of CUDA 12.3, whatever TensorFlow was built with."""
    (tmp_path / LIBRARY).write_bytes(library(TWO))
    monkeypatch.setattr(examine, "_find_tensorflow", lambda python: tmp_path)
    build = {"cuda_build": True, "built_with_cuda": "12.5", "compute_capabilities": ["sm_80", "compute_90"]}
    gpu = {"devices": {"0": {"name": "new", "compute_capability": "13.0"}}, "cuda_driver_version": "12.4"}
    facts = {"tensorflow": {"version": "2.17.0", **build}, "gpu": gpu}
    messages = [
        each.message for each in diagnose(build_from_live(Snapshot(facts, {}), SOUND)) if each.rule == "gpu-code"
    ]
    assert messages == [
        "GPU 0 (new): TensorFlow holds only PTX (compute_90) for compute capability 13.0: the driver compiles it at "
        "first use, and a driver for CUDA 12.4 can (needed: 12.3)"
    ]
    (tmp_path / LIBRARY).write_bytes(b"of another layout")
    (unread,) = [
        each.message for each in diagnose(build_from_live(Snapshot(facts, {}), SOUND)) if each.rule == "gpu-code"
    ]
    assert unread.endswith("but a driver for CUDA 12.4 cannot read PTX of CUDA 12.5 (error 222)")
