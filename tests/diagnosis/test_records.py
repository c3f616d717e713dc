"""What RECORDs and metadata folders say of one another, read from an environment; the printed command is obeyed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from envlock.diagnosis import examine
from envlock.diagnosis.checks import diagnose
from envlock.diagnosis.diagnosed_environment import Requirement, SharedFiles
from envlock.diagnosis.examine import find_remnants, find_shared_files
from envlock.packages.file_verification import survey
from envlock.packages.installation import collect_distributions
from envlock.runtime.distributions import find_distributions
from envlock.runtime.host import Host
from tests.diagnosis.environments import changed, clean
from tests.packages.installed import Prefix


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prefix:
    made = Prefix(tmp_path / "venv")
    made.install("six", "1.16.0", {"six.py": "x = 1\n"})
    monkeypatch.setattr(examine, "find_installation", lambda python: made.place)
    return made


def make_remnant(path: Path, kind: str) -> None:
    if kind == "an empty file":
        path.touch()
    elif kind == "a link to nothing":
        path.symlink_to("/nonexistent")
    else:
        path.mkdir()
        if kind != "an empty folder":
            (path / kind).touch()


REMNANTS = ["REQUESTED", "INSTALLERabc.tmp", "an empty folder", "an empty file", "a link to nothing"]


@pytest.mark.processes
@pytest.mark.parametrize("made", REMNANTS)
@pytest.mark.parametrize("name", ["six-1.15.0", "absl_py-0.1", "tensorflow-2.15.0"])
def test_what_describes_no_package_is_none_and_the_command_removes_it(prefix: Prefix, name: str, made: str) -> None:
    assert find_remnants() == []
    path = prefix.site / f"{name}.dist-info"
    make_remnant(path, made)
    found = find_distributions(Host(environ={}, path=[str(prefix.site)]))
    assert {each.name: (each.version, each.rivals) for each in found.values()} == {"six": ("1.16.0", [])}
    assert list(collect_distributions(prefix.place)) == ["six"]
    assert [package.title for package in survey(prefix.place).packages] == ["six 1.16.0"]
    (finding,) = diagnose(changed(clean(), remnants=find_remnants()))
    assert (finding.rule, finding.severity) == ("remnant", "warning")
    assert path.name in finding.message
    (command,) = finding.commands
    subprocess.run(command, shell=True, check=True)
    assert find_remnants() == []
    assert not path.is_symlink()


def test_metadata_without_a_record_beside_the_installed_one_is_removed(prefix: Prefix) -> None:
    """An upgrade that was interrupted: pip cannot uninstall it, and uv leaves it where it is."""
    path = prefix.site / "Six-1.15.0.dist-info"
    path.mkdir()
    (path / "METADATA").write_text("Metadata-Version: 2.1\nName: six\nVersion: 1.15.0\n", encoding="utf-8")
    assert find_remnants() == [str(path)]
    # One cause, one remedy: that the version is unknown has no second one.
    rivals = {"packages.six.version": {"reason": "versions 1.15.0 and 1.16.0", "code": "ambiguous"}}
    found = diagnose(changed(clean(), unavailable=rivals, remnants=[str(path)]))
    assert [finding.rule for finding in found] == ["remnant"]
    found = diagnose(changed(clean(), unavailable=rivals))
    assert [finding.rule for finding in found] == ["fact-unknown"]


def test_metadata_or_a_record_make_a_package(prefix: Prefix) -> None:
    for file in ("METADATA", "RECORD"):
        (prefix.site / f"{file.lower()}-1.dist-info").mkdir()
        (prefix.site / f"{file.lower()}-1.dist-info" / file).touch()
    assert find_remnants() == []
    assert set(find_distributions(Host(environ={}, path=[str(prefix.site)]))) == {"six", "metadata", "record"}


def test_two_owners_of_one_path(prefix: Prefix) -> None:
    prefix.install("nvidia_cudnn_cu12", "8.9.4.25", {"nvidia/__init__.py": "", "nvidia/cudnn/libcudnn.so.8": "twelve"})
    prefix.install("nvidia_nccl_cu12", "2.27.3", {"nvidia/__init__.py": "", "nvidia/nccl/libnccl.so.2": "nccl"})
    assert find_shared_files() == []
    prefix.install("nvidia_cudnn_cu11", "8.7.0.84", {"nvidia/__init__.py": "", "nvidia/cudnn/libcudnn.so.8": "eleven"})
    names = ("nvidia-cudnn-cu11", "nvidia-cudnn-cu12")
    assert find_shared_files() == [SharedFiles(names, ("nvidia/cudnn/libcudnn.so.8",))]
    packages = {"nvidia-cudnn-cu11": {"version": "8.7.0.84"}, "nvidia-cudnn-cu12": {"version": "8.9.4.25"}}
    environment = changed(
        clean(),
        ("packages", {**clean().packages, **packages}),
        ("tensorflow.built_with_cuda", "12.2"),
        shared_files=find_shared_files(),
    )
    (finding,) = diagnose(environment)
    assert (finding.rule, finding.severity) == ("shared-files", "error")
    assert finding.fix == (
        "python -m pip uninstall --yes nvidia-cudnn-cu12 nvidia-cudnn-cu11 && "
        "python -m pip install --no-deps nvidia-cudnn-cu12==8.9.4.25"
    )
    shutil.rmtree(prefix.site / "nvidia_cudnn_cu11-8.7.0.84.dist-info")
    assert find_shared_files() == []


def test_neither_of_two_that_others_require_is_uninstalled() -> None:
    """calamari-ocr requires two packages that both bring `examples/__init__.py`."""
    findings = diagnose(
        changed(
            clean(),
            shared_files=[SharedFiles(("one", "two"), ("examples/__init__.py",))],
            requirements=[Requirement("app", "1.0", "one"), Requirement("app", "1.0", "two")],
        )
    )
    (finding,) = (each for each in findings if each.rule == "shared-files")
    assert (finding.severity, list(finding.commands)) == ("warning", [])
    assert finding.fix.startswith("Others require each of them, so none can go")
