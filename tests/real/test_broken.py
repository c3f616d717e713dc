"""The doctor on environments that are broken for real: one line tells what it is, and its fix, pasted, mends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.exhaustive import exhaustive, first
from tests.real.broken import Layer

PIP = "pip install --quiet --no-deps --no-warn-conflicts"
IMPORT = "python -c 'import tensorflow'"
XLA = "python -c 'import tensorflow as tf; tf.function(lambda x: x + 1, jit_compile=True)(tf.ones(3))'"
KERAS = """python -c 'import tensorflow as tf; raise SystemExit(hasattr(tf.keras, "ops"))'"""  # which Keras 3 has
CLOCK = """python -c '
import tensorflow as tf
try:
    tf.timestamp()
except tf.errors.FailedPreconditionError:
    pass'"""


@dataclass(frozen=True)
class Case:
    """One way to break an environment.

    Attributes:
        line: the only finding, as it is shown.
        fix: what is shown as its remedy, and is pasted into the shell; {pip} is the pip of the environment.
        breaks: lines that break it.
        fails: a command that fails for this reason before the remedy, and not after it.
        pasted: what a person does whom the remedy tells it in words.
    """

    line: str
    fix: str
    breaks: tuple[str, ...] = ()
    fails: str | None = None
    pasted: str | None = None


CASES = {
    "a value that aborts": Case(
        "  x TF_DETERMINISTIC_OPS is yes [variable-value]",
        "export TF_DETERMINISTIC_OPS=1",
        ("export TF_DETERMINISTIC_OPS=yes",),
        fails=CLOCK,
    ),
    "a misspelt variable": Case(
        "  ! 'TF_DETERMINSTIC_OPS' is set, and nothing reads this name [variable-misspelt]",
        'export TF_DETERMINISTIC_OPS="$TF_DETERMINSTIC_OPS"; unset TF_DETERMINSTIC_OPS',
        ("export TF_DETERMINSTIC_OPS=1",),
        fails="""python -c 'import tensorflow as tf; tf.timestamp()' && exit 1 || exit 0""",
    ),
    "a flag that XLA has lost": Case(
        "  x XLA_FLAGS holds --xla_gpu_deterministic_reductions, which TensorFlow 2.21.0 does not know [flag-unknown]",
        'export XLA_FLAGS="$(echo "$XLA_FLAGS" | sed -E \':a; s/(^| )--xla_gpu_deterministic_reductions(=[^ ]*)?( |$)/'
        " --xla_gpu_deterministic_ops=true /I; ta; s/^ +//; s/ +$//')\"",
        ("export XLA_FLAGS='--xla_cpu_multi_thread_eigen=false --xla_gpu_deterministic_reductions'",),
        fails=XLA,
    ),
    "half precision from keras.json": Case(
        "  ! keras.json sets floatx to float16 [keras-config]",
        "remove it from ~/.keras/keras.json (or the one in KERAS_HOME)",
        ("""echo '{"floatx": "float16"}' > "$KERAS_HOME/keras.json" """,),
        fails="""python -c 'import keras; raise SystemExit(keras.config.floatx() == "float16")'""",
        pasted="""echo '{}' > "$KERAS_HOME/keras.json" """,
    ),
    "a variable set after TensorFlow was imported": Case(
        "  x TF_DETERMINISTIC_OPS was changed after TensorFlow was imported [variable-too-late]",
        "set TF_DETERMINISTIC_OPS before the process starts, or above `import tensorflow`",
        (
            'site="$(python -c "import sysconfig; print(sysconfig.get_path(\'purelib\'))")"',
            'echo \'import os, tensorflow as tf; tf.timestamp(); os.environ["TF_DETERMINISTIC_OPS"] = "1"\' '
            '> "$site/late.pth"',  # no sitecustomize: Debian's own Python has one, which comes first
        ),
        pasted='echo > "$site/late.pth"; export TF_DETERMINISTIC_OPS=1',
    ),
}
"""In the environment with TensorFlow 2.21, without the package index."""

INSTALLED = {
    "protobuf too old": Case(
        "  x protobuf is 5.29.5, and TensorFlow 2.21.0 needs <8.0.0,>=6.31.1 [package-version]",
        "{pip} install 'protobuf<8.0.0,>=6.31.1'",
        (f"{PIP} protobuf==5.29.5",),
        fails=IMPORT,
    ),
    "an old pynvml before NVIDIA's": Case(
        "  ! The package folder of the distribution pynvml 11.4.1 hides the module of NVIDIA's nvidia-ml-py "
        "[nvml-binding]",
        "{pip} uninstall --yes nvidia-ml-py pynvml && {pip} install --no-deps nvidia-ml-py==12.575.51",
        (f"{PIP} nvidia-ml-py==12.575.51 pynvml==11.4.1",),
        fails="""python -c 'import pynvml; raise SystemExit(hasattr(pynvml, "__path__"))'""",
    ),
}
"""In the same, with packages that pip installs from the index."""

OLDER = {
    "NumPy 2 with TensorFlow 2.15": Case(
        "  x numpy is 2.2.6, and TensorFlow 2.15.1 needs <2.0.0,>=1.23.5 [package-version]",
        "{pip} install 'numpy<2.0.0,>=1.23.5'",
        (f"{PIP} numpy==2.2.6",),
        fails=IMPORT,
    ),
    "Keras 3 with TensorFlow 2.15": Case(
        "  ! keras is 3.5.0, and TensorFlow 2.15.1 needs <2.16,>=2.15.0 [package-version]",
        "{pip} install 'keras<2.16,>=2.15.0'",
        ("pip install --quiet --no-warn-conflicts keras==3.5.0",),  # with what it requires, or that is a finding, too
        fails=KERAS,
    ),
}


def check(case: Case, layer: Layer) -> None:
    """Break it, let the doctor tell, do as it says, and let it tell again."""
    assert layer.shell("envlock doctor").stdout == ""
    fails = [f'if ({case.fails}) >/dev/null 2>&1; then echo "it does not fail"; exit 3; fi'] if case.fails else []
    works = [f'({case.fails}) >/dev/null 2>&1 || {{ echo "it still fails"; exit 4; }}'] if case.fails else []
    told = layer.shell(*case.breaks, *fails, "envlock doctor || test $? = 1")
    assert told.returncode == 0, told.stdout + told.stderr
    _, line, _, shown = told.stdout.splitlines()
    fix = case.fix.replace("{pip}", f"{layer.folder}/bin/python -m pip")
    assert (line, shown) == (case.line, f"      fix: {fix}")
    after = layer.shell(*case.breaks, f"{{ {case.pasted or fix}; }} >&2", *works, "envlock doctor")
    assert (after.returncode, after.stdout) == (0, ""), after.stdout + after.stderr
    assert after.stderr.endswith("no problems found\n")


@exhaustive
@pytest.mark.parametrize("name", first(1, CASES))
def test_one_line_and_a_fix_that_works(name: str, tensorflow_python: Path, tmp_path: Path) -> None:
    check(CASES[name], Layer(tmp_path / "env", tensorflow_python))


@exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("name", INSTALLED)
def test_the_same_with_packages_from_the_index(name: str, tensorflow_python: Path, tmp_path: Path) -> None:
    check(INSTALLED[name], Layer(tmp_path / "env", tensorflow_python))


@pytest.mark.slow
@pytest.mark.older_tensorflows
@pytest.mark.parametrize("name", OLDER)
def test_the_same_with_an_older_tensorflow(name: str, older_tensorflow: Callable[[str], Path], tmp_path: Path) -> None:
    check(OLDER[name], Layer(tmp_path / "env", older_tensorflow("2.15.1")))
