"""The doctor's installing fixes, obeyed in real environments: the fault is gone, and no other package has changed.

The environments are made by pip and by uv; the wheels are small and stand in for the real ones (`shelf.py`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from envlock.runtime.distributions import normalise
from tests.conftest import absent
from tests.diagnosis.shelf import NVIDIA, fill
from tests.exhaustive import exhaustive
from tests.fakes.elf_writer import write_elf
from tests.fakes.fake_nvml import profile
from tests.real.broken import driver

pytestmark = [pytest.mark.slow, exhaustive]

UV = Path(sys.executable).with_name("uv")
SEVERITIES = ("error", "warning", "info")
H100, EIGHT = "h100-80gb-hbm3__590__whole", "h100-80gb-hbm3__535__eight"
CPU_2_16 = ("numpy==1.26.4", "keras==3.3.0", "six==1.16.0")
CUDA_2_21 = ("tensorflow==2.21.0", "numpy==2.0.2", "keras==3.12.0")
CUDA_WHEELS = {f"nvidia-{part.replace('_', '-')}-cu12": oldest for part, (oldest, _) in NVIDIA.items()}


def wheels(**others: str | None) -> tuple[str, ...]:
    """Return NVIDIA's wheels as TensorFlow 2.21 takes them at the least, with changes by part; None leaves one out."""
    changed = {f"nvidia-{part.replace('_', '-')}-cu12": version for part, version in others.items()}
    return tuple(f"{name}=={version}" for name, version in {**CUDA_WHEELS, **changed}.items() if version)


@dataclass(frozen=True)
class Case:
    """One fault.

    Attributes:
        rule: what finds it.
        installs: what is installed, one step after another, without what it needs.
        changes: distribution -> version before and after; None where it is not installed.
        gpu: whether the doctor runs where a driver and a GPU seem to be.
        alternatives: how many fixes are shown, the command first.
    """

    rule: str
    installs: tuple[tuple[str, ...], ...]
    changes: Mapping[str, tuple[str | None, str | None]]
    gpu: bool = False
    alternatives: int = 1


CASES = {
    "TensorFlow over TensorFlow, as tf_keras brings it": Case(
        "tensorflow-twice",
        ((*CPU_2_16, "tensorflow-cpu==2.16.2"), ("tensorflow==2.16.2", "tf-keras==2.16.0")),
        {"tensorflow-cpu": ("2.16.2", None)},
    ),
    "TensorFlow over TensorFlow, of two versions": Case(
        "tensorflow-twice",
        ((*CPU_2_16, "tensorflow-cpu==2.21.0"), ("tensorflow==2.16.2", "tf-keras==2.16.0")),
        {"tensorflow-cpu": ("2.21.0", None)},
    ),
    "TensorFlow over TensorFlow, beside another fault": Case(
        "tensorflow-twice",
        (("numpy==2.3.0", "keras==3.3.0", "six==1.16.0", "tensorflow-cpu==2.16.2"), ("tensorflow==2.16.2",)),
        {"tensorflow-cpu": ("2.16.2", None)},
    ),
    "a file of two distributions": Case(
        "shared-files",
        ((*CPU_2_16, "tensorflow-cpu==2.16.2", "first==1.0", "second==1.0"),),
        {"second": ("1.0", None)},
    ),
    "requirements": Case(
        "requirements",
        ((*CPU_2_16, "tensorflow-cpu==2.16.2", "asker==1.0", "helper==1.0", "typing-extensions==4.16.0"),),
        {"typing-extensions": ("4.16.0", "4.5.0"), "pygments": (None, "2.20.0")},
    ),
    "tf-keras of another TensorFlow": Case(
        "requirements",
        (("numpy==2.0.2", "keras==3.12.0", "tensorflow-cpu==2.21.0", "tf-keras==2.16.0"),),
        {"tf-keras": ("2.16.0", "2.21.0")},
    ),
    "an add-on of another TensorFlow": Case("requirements", ((*CUDA_2_21, "addon==1.0"),), {"addon": ("1.0", "2.0")}),
    "no TensorFlow": Case(
        "tensorflow-missing",
        (("numpy==2.0.2", "keras==3.12.0"),),
        {"tensorflow": (None, "2.21.0")},
        alternatives=2,
    ),
    "NumPy 2 with TensorFlow 2.16": Case(
        "package-version",
        (("numpy==2.3.0", "keras==3.3.0", "six==1.16.0", "tensorflow-cpu==2.16.2"),),
        {"numpy": ("2.3.0", "1.26.4")},
    ),
    "wheels for CUDA 12 and 13": Case(
        "cuda-majors-mixed",
        ((*CUDA_2_21, *wheels()), ("nvidia-cudnn-cu13==9.20.0.48",)),
        {"nvidia-cudnn-cu13": ("9.20.0.48", None)},
    ),
    "an old cuDNN": Case(
        "cudnn-version",
        ((*CUDA_2_21, *wheels(cudnn="9.1.0.70")),),
        {"nvidia-cudnn-cu12": ("9.1.0.70", "9.3.0.75")},
    ),
    "an old cuDNN without cuBLAS": Case(
        "cudnn-version",
        ((*CUDA_2_21, *wheels(cudnn="9.1.0.70", cublas=None)),),
        {"nvidia-cudnn-cu12": ("9.1.0.70", "9.3.0.75"), "nvidia-cublas-cu12": (None, NVIDIA["cublas"][1])},
    ),
    "a CUDA library that is missing": Case(
        "library-missing",
        ((*CUDA_2_21, *wheels(cufft=None)),),
        {"nvidia-cufft-cu12": (None, "11.4.1.4")},
        gpu=True,
    ),
    "an old pynvml before NVIDIA's": Case(
        "nvml-binding",
        ((*CPU_2_16, "tensorflow-cpu==2.16.2", "nvidia-ml-py==12.575.51", "pynvml==11.4.1"),),
        {"pynvml": ("11.4.1", None)},
    ),
    "a new pynvml beside NVIDIA's": Case(
        "nvml-binding",
        ((*CPU_2_16, "tensorflow-cpu==2.16.2", "nvidia-ml-py==12.575.51", "pynvml==13.0.1"),),
        {"pynvml": ("13.0.1", None)},
    ),
    "a Keras that leaves XLA on": Case(
        "keras-xla",
        (("numpy==2.0.2", "keras==3.5.0", "six==1.16.0", "tensorflow-cpu==2.18.1"),),
        {"keras": ("3.5.0", "3.7.0")},
        gpu=True,
        alternatives=2,
    ),
}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the wheels."""
    return fill(tmp_path_factory.mktemp("shelf"))


class Environment:
    """An environment that pip or uv made, and whose index is a folder.

    Attributes:
        python: its interpreter.
        environ: the variables under which its commands run.
    """

    def __init__(self, folder: Path, installer: str, shelf: Path, empty: Path) -> None:
        self.installer = installer
        self.python = folder / "an env" / "bin" / "python"
        self.environ = {
            "PATH": f"{UV.parent}:{os.environ['PATH']}" if installer == "uv" else os.environ["PATH"],
            "HOME": str(folder),
            "KERAS_HOME": str(folder),
            "PYTHONHASHSEED": "0",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(shelf),
            "UV_CACHE_DIR": str(folder / "uv"),
            "UV_FIND_LINKS": str(shelf),
            "UV_NO_CONFIG": "1",
            "UV_OFFLINE": "1",
        }
        shutil.copytree(empty, self.python.parent.parent, symlinks=True)

    def run(self, words: list[str], code: int = 0) -> str:
        """Return what a command writes to its standard output."""
        done = subprocess.run(words, env=self.environ, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def pip(self, *words: str) -> str:
        """Run the command `pip` of the installer."""
        if self.installer == "uv":
            return self.run([str(UV), "pip", words[0], "--quiet", "--python", str(self.python), *words[1:]])
        return self.run([str(self.python), "-m", "pip", words[0], "--quiet", *words[1:]])

    def frozen(self) -> dict[str, str]:
        """Return the distributions and their versions, as the installer itself lists them."""
        pairs = (line.split("==") for line in self.pip("freeze").splitlines())
        return {normalise(name): version for name, version in pairs}

    def doctor(
        self, around: tuple[str, ...] = (), library_path: str | None = None, *lines: str
    ) -> dict[str, list[str]]:
        """Return the fixes by rule, as they are printed after lines of the shell."""
        seen = {} if library_path is None else {"LD_LIBRARY_PATH": library_path}
        shell = ["/bin/sh", "-c", "\n".join([*lines, 'exec "$@"']), "sh"]
        argv = [*around, *shell, sys.executable, "-m", "envlock", "doctor", "--python", str(self.python)]
        done = subprocess.run(
            argv, env={**self.environ, **seen}, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr
        found: dict[str, list[str]] = {}
        rules: list[str] = []
        for line in done.stdout.splitlines()[1:]:
            if line.startswith("      fix: "):
                for rule in rules:
                    found.setdefault(rule, []).append(line.removeprefix("      fix: "))
            elif line.startswith("      why: "):
                continue
            elif line.endswith("]"):
                rules = [line.rpartition("[")[2][:-1]]
        return found

    def verify(self, lock: Path, least: str = "error") -> list[dict[str, Any]]:
        """Return what `verify --deep` finds of the files, after a capture where there is no lock.

        What is less than `least` (error, warning or info) is left out.
        """
        argv, tail = [sys.executable, "-m", "envlock"], [str(lock), "--python", str(self.python)]
        if not lock.exists():
            self.run([*argv, "capture", "--quiet", "--without-tensorflow", "-o", *tail])
        done = subprocess.run(
            [*argv, "verify", "--deep", "--format", "json", *tail],
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
        known = SEVERITIES[: SEVERITIES.index(least) + 1]
        return [each for each in found if each["severity"] in known]


@pytest.fixture(scope="module", params=["pip", "uv"])
def empty(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Return each installer and an empty environment as it makes one."""
    if not UV.exists() and request.param == "uv":
        absent("uv is not installed in the environment of the tests")
    folder = tmp_path_factory.mktemp("empty") / "env"
    made = [str(UV), "venv", "--quiet"] if request.param == "uv" else [sys.executable, "-m", "venv"]
    subprocess.run([*made, str(folder)], check=True)
    return request.param, folder


@pytest.fixture
def environment(empty: tuple[str, Path], tmp_path: Path, shelf: Path) -> Environment:
    """Return a copy of an empty environment; nothing in it names its folder but scripts, which are not used."""
    return Environment(tmp_path, empty[0], shelf, empty[1])


@pytest.mark.parametrize("name", CASES)
def test_a_fix_is_obeyed(name: str, environment: Environment, tmp_path: Path) -> None:
    case = CASES[name]
    around, libraries = driver(tmp_path / "driver", H100) if case.gpu else ((), None)
    for step in case.installs:
        environment.pip("install", "--no-deps", *step)
    before, told = environment.frozen(), environment.doctor(around, libraries)
    fix, *others = told.pop(case.rule)
    assert len(others) == case.alternatives - 1
    environment.run(["/bin/sh", "-c", fix])
    left = environment.doctor(around, libraries)
    assert case.rule not in left
    assert {rule: fixes for rule, fixes in left.items() if told.get(rule) != fixes} == {}, "it made another fault"
    after = environment.frozen()
    names = before.keys() | after.keys()
    changed = {each: (before.get(each), after.get(each)) for each in names}
    assert {each: pair for each, pair in changed.items() if pair[0] != pair[1]} == case.changes


class ShellCase(NamedTuple):
    """One fault of a machine with GPUs, or of the variables of its shell.

    Attributes:
        rule: what finds it.
        says: what its fix has.
        installs: what is installed, without what it needs.
        line: of the shell, with the fault; SEEN has a libcufft, and SEEN/stubs a libcuda.
        obeyed: what is typed then; nothing is the fix itself.
        broken: a file of the packages that is cut off.
        gpus: names of the GPUs.
    """

    rule: str
    says: str
    installs: tuple[str, ...] = (*CUDA_2_21, *wheels())
    line: str = ""
    obeyed: str = ""
    broken: str = ""
    gpus: tuple[str, ...] = ("NVIDIA H100 80GB HBM3",)


SEEN = "/usr/src"
"""The path is only shown of a folder that belongs to the system, so one is lent to the process."""
BIND = f"mount --bind FOLDER {SEEN}"
SHELL_CASES = {
    "a TensorFlow without CUDA": ShellCase(
        "gpus-unused",
        "hide the GPUs: export CUDA_VISIBLE_DEVICES=-1",
        ("numpy==2.0.2", "keras==3.12.0", "tensorflow-cpu==2.21.0"),
        obeyed="export CUDA_VISIBLE_DEVICES=-1",
    ),
    "a GPU that is not there": ShellCase(
        "gpus-none", "or unset it", line="export CUDA_VISIBLE_DEVICES=7", obeyed="unset CUDA_VISIBLE_DEVICES"
    ),
    "two models": ShellCase(
        "gpus-mixed",
        "export CUDA_DEVICE_ORDER=PCI_BUS_ID, and let CUDA_VISIBLE_DEVICES show one model only",
        obeyed="export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0",
        gpus=("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"),
    ),
    "a library that is cut off": ShellCase(
        "library-broken", "nvidia-cufft-cu12==11.2.3.61", broken="nvidia/cufft/lib/libcufft.so.11"
    ),
    "a libcuda for linking": ShellCase(
        "driver-stub", "sed -E", line=f'{BIND}; export LD_LIBRARY_PATH="{SEEN}/stubs:$LD_LIBRARY_PATH"'
    ),
    "another cuFFT before the wheel's": ShellCase(
        "library-shadowed", "sed -E", line=f'{BIND}; export LD_LIBRARY_PATH="{SEEN}:$LD_LIBRARY_PATH"'
    ),
}


@pytest.mark.parametrize("name", SHELL_CASES)
def test_a_line_for_the_shell_is_obeyed(name: str, environment: Environment, tmp_path: Path) -> None:
    case = SHELL_CASES[name]
    given = profile(EIGHT)
    given["devices"] = [{**device, "name": gpu} for device, gpu in zip(given["devices"], case.gpus, strict=False)]
    around, libraries = driver(tmp_path / "driver", given)
    folder = tmp_path / "other"
    write_elf(folder / "libcufft.so.11")
    write_elf(folder / "stubs" / "libcuda.so.1")
    environment.pip("install", "--no-deps", *case.installs)
    before = environment.frozen()
    (site,) = environment.python.parent.parent.glob("lib/python3*/site-packages")
    if case.broken:
        (site / case.broken).write_bytes((site / case.broken).read_bytes()[:100])
    line = case.line.replace("FOLDER", str(folder))
    (fix,) = (told := environment.doctor(around, libraries, line)).pop(case.rule)
    assert case.says in fix
    left = environment.doctor(around, libraries, line, case.obeyed or fix)
    assert {rule: fixes for rule, fixes in left.items() if told.get(rule) != fixes} == {}
    assert environment.frozen() == before


def test_what_was_shared_is_whole_again(environment: Environment) -> None:
    """The files of the distribution that is kept, and none of the one that is removed."""
    environment.pip("install", "--no-deps", *CPU_2_16, "tensorflow-cpu==2.16.2")
    environment.pip("install", "--no-deps", "tensorflow==2.16.2", "tf-keras==2.16.0")
    environment.run(["/bin/sh", "-c", environment.doctor()["tensorflow-twice"][0]])
    (folder,) = environment.python.parent.parent.glob("lib/python3*/site-packages/tensorflow")
    assert sorted(each.name for each in folder.glob("*.*")) == ["__init__.py", "tensorflow.txt"]


def test_nothing_is_advised_where_nothing_is_wrong(environment: Environment) -> None:
    environment.pip("install", "tensorflow==2.16.2", "tf-keras==2.16.0", "asker==1.0")
    assert environment.doctor() == {}


def test_the_patch_for_an_old_tensorflow(environment: Environment) -> None:
    """The command is the first half of a sentence there: what must be called besides stands behind it."""
    environment.pip("install", "--no-deps", "tensorflow==1.15.0", *CPU_2_16)
    before = environment.frozen()
    command, _, rest = environment.doctor()["patch-missing"][0].partition(", and call ")
    assert rest == "fwr13y.d9m.tensorflow.enable_determinism()"
    environment.run(["/bin/sh", "-c", command])
    assert "patch-missing" not in environment.doctor()
    assert environment.frozen() == {**before, "framework-reproducibility": "0.6.0"}


@pytest.mark.parametrize("fault", ["modified", "missing", "damaged-record"])
def test_a_package_with_wrong_files_is_reinstalled(fault: str, environment: Environment, tmp_path: Path) -> None:
    """uv links the files of its cache into an environment, so that an edit is in both: it must not come back."""
    environment.pip("install", "--no-deps", "six==1.16.0", "helper==1.0")
    (site,) = environment.python.parent.parent.glob("lib/python3*/site-packages")
    first, record = environment.verify(tmp_path / "envlock.lock"), site / "six-1.16.0.dist-info" / "RECORD"
    file = next(site / row.split(",")[0] for row in record.read_text().splitlines() if ".dist-info" not in row)
    whole = file.read_bytes()
    if fault == "modified":
        with file.open("ab") as stream:
            stream.write(b"# edited")
    elif fault == "missing":
        file.unlink()
    else:
        with record.open("a") as stream:
            stream.write("a line that is none\n")
    before, found = environment.frozen(), environment.verify(tmp_path / "envlock.lock")
    (fix,) = {finding["fix"].removeprefix("Reinstall the package: ") for finding in found}
    command = fix.removeprefix("remove the folder of its metadata, and run ")
    assert (command != fix) == (fault == "damaged-record" and environment.installer == "uv")
    if command != fix:
        shutil.rmtree(record.parent)
    environment.run(["/bin/sh", "-c", command])
    assert environment.verify(tmp_path / "envlock.lock") == first == []
    assert (environment.frozen(), file.read_bytes()) == (before, whole)


class FileCase(NamedTuple):
    """A fault of the files of `six` 1.16.0, which is installed and locked.

    Attributes:
        make: makes it, in an environment with this folder of packages.
        obey: does what the line says.
        says: what the line has.
        least: how severe the finding is.
    """

    make: Callable[[Environment, Path], object]
    obey: Callable[[Environment, Path], object]
    says: str
    least: str = "error"


def install_over(environment: Environment, site: Path) -> None:
    """Leave the metadata of another version, as a tool does that only copies files."""
    environment.pip("install", "--no-deps", "six==1.17.0")
    shutil.copytree(site / "six-1.17.0.dist-info", site.parent / "kept")
    environment.pip("install", "--no-deps", "six==1.16.0")
    shutil.move(site.parent / "kept", site / "six-1.17.0.dist-info")


def uninstall_all(environment: Environment, site: Path) -> None:
    """Uninstall a package until no metadata folder is left, and install the locked version."""
    while list(site.glob("six-*.dist-info")):
        environment.pip("uninstall", *(["--yes"] if environment.installer == "pip" else []), "six")
    environment.pip("install", "--no-deps", "six==1.16.0")


def reinstall(environment: Environment, site: Path) -> None:
    """Install the locked version again."""
    option = "--reinstall" if environment.installer == "uv" else "--force-reinstall"
    environment.pip("install", "--no-deps", option, "six==1.16.0")


def set_aside(environment: Environment, site: Path) -> None:
    """Leave what pip has renamed, and take a part of the package, as an upgrade does that is killed."""
    shutil.copytree(site / "six", site / "~ix")
    (site / "six" / "version.py").unlink()


def remove_aside(environment: Environment, site: Path) -> None:
    shutil.rmtree(site / "~ix")
    reinstall(environment, site)


def name_outside(environment: Environment, site: Path) -> None:
    """Let the RECORD name a file outside the environment."""
    (site.parents[3] / "outside").touch()
    with (site / "six-1.16.0.dist-info" / "RECORD").open("a") as stream:
        stream.write("../../../../outside,,\n")


def trust_again(environment: Environment, site: Path) -> None:
    shutil.rmtree(site / "six-1.16.0.dist-info")
    environment.pip("install", "--no-deps", "six==1.16.0")
    assert (site.parents[3] / "outside").exists()


def forget_hashes(environment: Environment, site: Path) -> None:
    """Let the RECORD have no hash, as that of old tools."""
    record = site / "six-1.16.0.dist-info" / "RECORD"
    rows = [line.split(",")[0] for line in record.read_text().splitlines()]
    record.unlink()
    record.write_text("".join(f"{row},,\n" for row in rows))


def install_second(environment: Environment, site: Path) -> None:
    environment.pip("install", "--no-deps", "second==1.0")


def keep_the_first(environment: Environment, site: Path) -> None:
    environment.pip("uninstall", *(["--yes"] if environment.installer == "pip" else []), "first", "second")
    environment.pip("install", "--no-deps", "first==1.0")


FILE_CASES = {
    "duplicate-package": FileCase(install_over, uninstall_all, "Uninstall it until no metadata folder"),
    "half-upgraded": FileCase(set_aside, remove_aside, "Remove it, and reinstall the package of that name."),
    "outside-environment": FileCase(name_outside, trust_again, "Remove the folder of its metadata"),
    "no-hash": FileCase(forget_hashes, reinstall, "Reinstall the package from a wheel.", least="info"),
    "doubly-owned": FileCase(install_second, keep_the_first, "Uninstall both, then install the right one."),
}


@pytest.mark.parametrize("rule", FILE_CASES)
def test_what_is_done_to_a_package_ends_the_finding(rule: str, environment: Environment, tmp_path: Path) -> None:
    case, lock = FILE_CASES[rule], tmp_path / "envlock.lock"
    environment.pip("install", "--no-deps", "six==1.16.0", "first==1.0")
    (site,) = environment.python.parent.parent.glob("lib/python3*/site-packages")
    before = environment.verify(lock, case.least)
    case.make(environment, site)
    found = [each for each in environment.verify(lock, case.least) if each not in before]
    (fix,) = {each["fix"] for each in found if each["rule"] == f"file-{rule}"}
    assert case.says in fix
    case.obey(environment, site)
    assert environment.verify(lock, case.least) == before
