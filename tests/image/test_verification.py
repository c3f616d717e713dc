"""What is the image's and what is the machine's, and what an image answers. The engine is a stand-in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from envlock.image.engines.container_run import Finished
from envlock.image.image_verification import (
    ask_entrypoint,
    describe_verdict,
    is_of_machine,
    list_differences,
    verify,
)
from envlock.runtime.errors import OutsideError
from envlock.runtime.files.findings import Fault, make_findings
from envlock.runtime.report import Finding
from tests.image.plans import lock
from tests.trees import put

HELD = lock()


def run(facts: dict[str, Any], files: list[dict[str, Any]] | None = None) -> Any:
    printed = f"== TensorFlow ==\n{json.dumps([facts, HELD['unavailable'], {}, files or []])}"
    return lambda argv: Finished(0, printed, "")


def test_whose_a_fact_is() -> None:
    machines = ["gpu", "gpu.devices.0.name", "cuda.cuda_driver.version", "cpu.flags", "cpu", "system.kernel_release"]
    images = ["cuda.cudnn.version", "cuda", "system.libc_version", "packages.numpy.version", "environ.XLA_FLAGS"]
    assert [path for path in (*machines, *images) if is_of_machine(path)] == machines


def test_the_locked_environment_on_the_locked_machine() -> None:
    verdict = verify(HELD, run(HELD["facts"]))
    assert (verdict.image.match, verdict.machine.match) == (True, True)
    assert (
        describe_verdict(verdict, "x:1") == "x:1 was verified inside: it matches under policy strict, with 1 override"
    )


def test_another_machine_is_said_and_is_no_fault_of_the_image() -> None:
    verdict = verify(HELD, run(put(HELD["facts"], "cpu.flags", ["avx"])))
    assert (verdict.image.match, verdict.machine.match) == (True, False)
    assert describe_verdict(verdict, "x:1") == (
        "x:1 was verified inside: it is the locked environment. This machine is not the locked one (cpu.flags), "
        "so the image refuses to start here"
    )


def test_another_package_is_a_fault_of_the_image() -> None:
    verdict = verify(HELD, run(put(HELD["facts"], "packages.numpy.version", "2.0")))
    assert [finding.where.fact for finding in verdict.image.findings] == ["packages.numpy.version"]
    said = verdict.image.to_text().splitlines()[1]
    assert said == "  x packages.numpy.version: locked 1.26.4, in the image 2.0"


def test_a_file_that_the_build_has_installed_must_be_as_recorded_and_one_of_the_base_need_not() -> None:
    wrong = [Fault("modified", path, "different content") for path in ("/opt/venv/s/absl/a.py", "/usr/lib/b.py")]
    files = [each.to_json() for each in make_findings(wrong, ["/opt/venv/s"])]
    found = verify(HELD, run(HELD["facts"], files)).image
    assert found.to_text().splitlines()[:2] == [
        "does not match under policy strict, with 1 override: 1 file is not as recorded",
        "  x absl/a.py: different content",
    ]
    assert [each.where.fact for each in found.of("info")] == ["/usr/lib/b.py"]
    assert verify(HELD, run(HELD["facts"], files), installed=False).image.match


def test_what_a_program_loads_is_asked_for_where_a_lockfile_holds_it() -> None:
    held = put(HELD, "facts.loaded", {"imports": ["tensorflow"], "unexplained": []})
    found = [
        Finding("exact", "error", f"loaded.{role}", message="not the locked file", why="", fix="", source="").to_json()
        for role in ("cuda", "openmp")
    ]
    asked: list[list[str]] = []

    def answer(argv: list[str]) -> Finished:
        asked.append(argv)
        if argv == ["--loaded"]:
            return Finished(0, f"imported\n{json.dumps(found)}", "")
        files: list[object] = [[]] if argv == ["--deep"] else []
        return Finished(0, json.dumps([HELD["facts"], HELD["unavailable"], {}, *files]), "")

    verdict = verify(held, answer)
    assert [each.where.fact for each in verdict.image.findings] == ["loaded.openmp"]
    # The machine that builds may have no GPU.
    assert [each.where.fact for each in verdict.machine.findings] == ["loaded.cuda"]
    assert (verdict.image.match, asked) == (False, [["--deep"], ["--loaded"]])
    # It was verified before, or only the project has changed.
    assert verify(held, answer, deep=False, imported=True).image.match
    assert verify(held, answer, imported=True).image.match
    assert asked[2:] == [["--facts"], ["--deep"]]


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (Finished(1, "", "Traceback\nboom\x1b[31m"), "exit code 1: boom\\x1b[31m"),
        (Finished(0, "no JSON", ""), "exit code 0: no JSON"),
        (Finished(0, "", ""), "exit code 0: "),
    ],
)
def test_an_image_that_does_not_answer(done: Finished, said: str) -> None:
    with pytest.raises(OutsideError) as raised:
        ask_entrypoint(lambda argv: done, ["--facts"])
    assert raised.value.message == f"the image cannot be verified: its entrypoint ended with {said}"
    assert raised.value.exit_code == 5


def test_which_files_differ() -> None:
    old = {"/a": [1, 0, 0, "x"], "/b": [1, 0, 0, "x"], "/c\n": [1, 0, 0, "x"], "/same": [1, 0, 0, "x"]}
    new = {"/a": [1, 0, 0, "y"], "/b": [2, 1, 0, "x"], "/d": [1, 0, 0, "x"], "/same": [1, 0, 0, "x"]}
    assert list_differences(old, new) == [
        "only in the locked image: /c\\n",
        "only in the new image: /d",
        "different content: /a",
        "different mode and owner: /b",
    ]
