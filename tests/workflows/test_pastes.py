"""Differences from a pasted text: what it states is compared, and nothing is ever a match."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envlock.runtime.errors import LockfileError
from envlock.runtime.report import ERROR, Report
from envlock.workflows.diff import diff
from tests.conftest import Command
from tests.locks import FACTS, document, encode

FACTS = {
    **FACTS,
    "python": {"version": "3.11.7"},
    "packages": {"numpy": {"version": "1.26.4"}, "six": {"version": "1.17.0"}, "tensorflow": {"version": "2.15.0"}},
    "tensorflow": {"version": "2.15.0"},
    "gpu": {"driver_version": "535.54.03", "devices": {"0": {"name": "Tesla V100-SXM2-16GB", "memory_mib": 16384}}},
    "cuda": None,
}
UNSTATED = "not in it: Python, CPU, GPU, CUDA, the operating system and variables"


def compared(text: str, policy: str = "strict") -> Report:
    return diff(text.encode(), encode(document(facts=FACTS, unavailable={})), policy, names=("theirs", "ours"))


def told(report: Report) -> list[str]:
    return [each.message for each in report.findings if each.severity == ERROR]


def test_what_a_freeze_states_is_compared_and_the_rest_is_named() -> None:
    report = compared("numpy==1.25.2\nsix==1.17.0\ntensorflow==2.15.0\n")
    assert report.headline == (
        f"does not match under policy strict: 4 facts of a pasted freeze compared, 1 differs; {UNSTATED}"
    )
    assert told(report) == ["packages.numpy.version: theirs 1.25.2, ours 1.26.4 (line 1)"]
    # A paste is no lockfile, so the command that installs one is not the remedy.
    assert report.findings[0].fix.startswith("Install what the text names, or ask for a lockfile")
    assert report.findings[0].source == "line 1: numpy==1.25.2"
    assert (report.exit_code, report.extent and report.extent.facts) == (1, 4)


def test_an_equal_paste_is_no_match() -> None:
    report = compared("numpy==1.26.4\n")
    assert report.headline == (
        f"cannot decide under policy strict: 1 fact of a pasted freeze compared, none differs; {UNSTATED}"
    )
    assert (report.match, report.exit_code) == (False, 4)


@pytest.mark.parametrize(
    ("text", "differing"),
    [
        ("dependencies:\n- python=3.11\n- numpy=1.26\n- cudatoolkit=11.8\n", []),
        ("dependencies:\n- python=3.1\n", ["python.version: theirs 3.1, ours 3.11.7 (line 2)"]),
        ("FROM python:3.10-slim\n", ["python.version: theirs 3.10, ours 3.11.7 (line 1)"]),
        ("FROM nvidia/cuda:12.2.2-runtime-ubuntu22.04\n", ["cuda: theirs {cudart}, ours none (line 1)"]),
        ("h5py==3.1.0\n", ["packages.h5py: theirs 3.1.0, ours absent (line 1)"]),
        (
            "| NVIDIA-SMI 1  Driver Version: 535.54.03 |\n|  0  Tesla V100-SXM2...  Off | 0:0 Off | Off |\n",
            ["gpu.devices.0.ecc: theirs false, ours absent (line 2)"],
        ),
    ],
)
def test_as_much_as_is_stated_is_compared(text: str, differing: list[str]) -> None:
    found = [message for message in told(compared(text)) if not message.startswith("system")]
    assert found == differing


def test_what_has_another_name_elsewhere_is_not_compared_but_said() -> None:
    report = compared("dependencies:\n- numpy=1.26\n- cudatoolkit=11.8\n- nltk=3.2\n")
    assert report.notes == ["not compared, as the other side has nothing of the name: cudatoolkit and nltk"]


def test_the_package_of_the_project_which_no_lockfile_locks_is_not_compared_but_said() -> None:
    lock = encode(document(facts=FACTS, unavailable={}, project={"name": "my-model"}))
    report = diff(b"numpy==1.26.4\nmy_model==1.0\n", lock, "strict", names=("theirs", "ours"))
    assert (told(report), report.notes) == ([], ["not compared, as the other side has nothing of the name: my-model"])
    both = diff(b"keras==3.0\n", lock.replace(b"my-model", b"keras"), "strict", names=("theirs", "ours"))
    assert told(both) == ["packages.keras: theirs 3.0, ours absent (line 1)"]


def test_a_package_that_a_text_has_more_is_not_to_be_taken_from_this_environment() -> None:
    lock = encode(document(facts=FACTS, unavailable={}))
    (found,) = [each for each in diff(lock, b"h5py==3.1.0\n", "strict").findings if each.severity == ERROR]
    assert found.fix.startswith("Install what the text names, or ask for a lockfile")


def test_another_machine_that_a_text_names_cannot_be_accepted_here() -> None:
    table = """
| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4     |
|   0  Tesla K80           On   | 00000000:00:04.0 Off |                    0 |
| N/A   36C    P8    26W / 149W |      0MiB / 11441MiB |      0%      Default |
"""
    text = compared(table).to_text()
    assert "another machine: Tesla K80 -> Tesla V100-SXM2-16GB (5 facts)" in text
    assert "fix: Ask for a lockfile that was captured on that machine" in text
    assert "--add-machine" not in text


def test_a_package_without_a_version_is_named() -> None:
    text = (
        "numpy==1.26.4\nsix @ file:///home/a/six\n-e git+https://git.example/a/b.git@f00#egg=six_more&subdirectory=x\n"
    )
    assert compared(text).notes == ["not compared, as the text states no version: six and six-more"]


def test_what_the_policy_accepts_is_no_difference() -> None:
    table = "| NVIDIA-SMI 1  Driver Version: 535.54.03 |\n|  0  Tesla V100-SXM2-16GB  Off | 0:0 Off | N/A |\n"
    table += "| N/A 38C P0 41W / 300W | 10633MiB / 16160MiB | 0% Default |\n"
    assert told(compared(table)) == []


def test_of_two_pastes_what_both_state_is_compared() -> None:
    report = diff(b"numpy==1.0\nsix==1.0\n", b"dependencies:\n- numpy=1.1\n", names=("a", "b"))
    assert told(report) == ["packages.numpy.version: a 1.0, b 1.1 (line 1 and line 2)"]
    assert report.headline.startswith(
        "does not match under policy strict: 1 fact of a pasted freeze and a pasted environment.yml compared, 1 differs"
    )


def test_the_lockfile_of_pipenv_is_a_paste() -> None:
    text = json.dumps({"_meta": {"pipfile-spec": 6}, "default": {"numpy": {"version": "==1.25.2"}}}, indent=4)
    report = compared(text)
    assert told(report) == ["packages.numpy.version: theirs 1.25.2, ours 1.26.4 (line 7)"]
    assert "1 fact of a pasted Pipfile.lock compared" in report.headline


def test_a_part_of_a_lockfile_of_uv_is_a_paste() -> None:
    report = compared('    { url = "https://a.example/x.whl" },\n]\n[[package]]\nname = "numpy"\nversion = "1.25.2"\n')
    assert told(report) == ["packages.numpy.version: theirs 1.25.2, ours 1.26.4 (line 5)"]


def test_a_text_that_is_neither_ends_in_a_sentence() -> None:
    with pytest.raises(LockfileError, match=r"^stdin is neither a lockfile nor a text that states facts"):
        compared("\x1b[2J hello")


def test_the_commands_read_a_paste(envlock: Command, tmp_path: Path) -> None:
    (tmp_path / "freeze.txt").write_text("numpy==0.0.1\n")
    done = envlock("diff", "freeze.txt", "live")
    assert (done.returncode, "1 fact of a pasted freeze compared" in done.stdout) == (1, True)
    done = envlock("show", "freeze.txt")
    assert done.stdout == (f"pasted freeze: 1 fact; {UNSTATED}\n  packages.numpy.version           0.0.1 (line 1)\n")
    done = envlock("show", "-", "--format", "json", stdin=b"numpy==0.0.1\n")
    assert json.loads(done.stdout)["lines"] == {"packages.numpy.version": 1}
    done = envlock("verify", "freeze.txt")
    assert (done.returncode, "`envlock diff FILE live` reads a freeze" in done.stderr) == (3, True)
