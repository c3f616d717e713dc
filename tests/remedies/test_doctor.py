"""What the doctor prints for this shell and these files, pasted into a shell: its finding is gone, and no other came.

What installs packages is obeyed by tests/diagnosis/test_obeyed.py, with real installers.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import Command
from tests.machines import distribution
from tests.remedies.test_facts import World

pytestmark = [pytest.mark.processes, pytest.mark.longer]


class Case(NamedTuple):
    """A state in which a rule finds something.

    Attributes:
        rule: what finds it.
        environ: variables that are wrong; None takes one away.
        tensorflow: its version.
        pasted: what a person does whom the remedy tells it in words; else its first command is run.
        says: what the remedy has, where its first command is not what is run.
        breaks: lines of a shell that break the environment first, in which $site is the folder of its packages.
    """

    rule: str
    environ: dict[str, str | None] = {}  # noqa: RUF012 (nobody changes it)
    tensorflow: str = "2.21.0"
    pasted: str = ""
    says: str = ""
    breaks: str = ""


FAULTS = {
    "a word for a number": Case("variable-value", {"TF_DETERMINISTIC_OPS": "yes"}),
    "a word for off": Case("variable-value", {"TF_ENABLE_ONEDNN_OPTS": "off"}),
    "epochs cut short": Case("variable-dangerous", {"KERAS_MAX_EPOCHS": "1"}),
    "another engine": Case("variable-dangerous", {"KERAS_BACKEND": "jax"}),
    "no hash seed": Case("variable-needed", {"PYTHONHASHSEED": None}),
    "no switch in 2.4": Case("variable-needed", {"TF_DETERMINISTIC_OPS": None}, "2.4.4"),
    "a name of documents": Case("variable-not-read", {"TF_USE_CUDNN_AUTOTUNE": "0"}),
    "a letter left out": Case("variable-misspelt", {"TF_DETERMINSTIC_OPS": "1"}),
    "two ceilings": Case("variables-contradict", {"ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "SSE41"}),
    "Keras 2 that is not there": Case(
        "variable-package",
        {"TF_USE_LEGACY_KERAS": "1"},
        pasted="unset TF_USE_LEGACY_KERAS",
        says="unset TF_USE_LEGACY_KERAS",
    ),
    "a flag of 2.7": Case("flag-unknown", {"XLA_FLAGS": "--xla_gpu_deterministic_reductions"}),
    "a flag twice": Case(
        "flag-dangerous", {"XLA_FLAGS": "--xla_gpu_deterministic_ops=true --xla_gpu_deterministic_ops=false"}
    ),
    "no file of flags": Case("flag-file-missing", {"XLA_FLAGS": "/nowhere/flags"}),
    "half precision": Case(
        "keras-config",
        breaks="""echo '{"floatx": "float16"}' > "$KERAS_HOME/keras.json" """,
        pasted="""rm "$KERAS_HOME/keras.json" """,
        says="remove it from ~/.keras/keras.json",
    ),
    "what an upgrade left": Case(
        "remnant", breaks='mkdir "$site/six-1.0.dist-info"; touch "$site/six-1.0.dist-info/x"'
    ),
    "no TensorFlow": Case(
        "tensorflow-missing",
        breaks='mv "$site/tensorflow"* "$KERAS_HOME"',
        pasted='mv "$KERAS_HOME/tensorflow"* "$site"',
        says="install",
    ),
}


class Shell:
    """A shell with an environment whose packages are made of files."""

    def __init__(self, world: World, case: Case) -> None:
        self.world, self.breaks = world, case.breaks
        self.environ = {**world.environ, "site": str(world.site), "NO_COLOR": "1"}
        self.environ.pop("PYTHONPATH")
        for name, value in case.environ.items():
            self.environ.pop(name, None)
            if value is not None:
                self.environ[name] = value

    def doctor(self, *lines: str) -> list[dict[str, Any]]:
        """Return the findings after lines of the shell."""
        command = f'"{self.world.argv[0]}" -m envlock doctor --python "{self.world.python}" --format json'
        done = subprocess.run(
            ["/bin/sh", "-c", "\n".join([*lines, command])],
            cwd=self.world.project,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
        return found


def describe(findings: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Return rule and message of each finding."""
    return {(each["rule"], each["message"]) for each in findings}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_pasted_ends_the_finding(fault: str, envlock: Command, tmp_path: Path) -> None:
    case = FAULTS[fault]
    world = World(envlock, tmp_path)
    if case.tensorflow != "2.21.0":
        (world.site / "tensorflow-2.21.0.dist-info").rename(tmp_path / "old")
        distribution(world.site, "tensorflow", case.tensorflow)
    shell = Shell(world, case)
    told = shell.doctor(case.breaks)
    (found,) = [each for each in told if each["rule"] == case.rule]
    assert case.says in found["fix"]
    after = shell.doctor(case.pasted or found["commands"][0])
    assert describe(after) <= describe(told) - describe([found])
