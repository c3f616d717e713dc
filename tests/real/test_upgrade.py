"""`envlock upgrade` over real packages: NumPy's own sum, which two of its versions add in another order."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import Command
from tests.exhaustive import exhaustive

PROGRAM = """
import numpy as np
import tensorflow as tf

def step():
    random = np.random.default_rng(0)
    for _ in range(3):
        total = np.array([random.random(100_003).astype("float32").sum() for _ in range(20)])
        yield {"total": tf.constant(total) * 2}
"""


@exhaustive
def test_a_package_whose_numbers_are_others_is_named(envlock: Command, tmp_path: Path, tensorflow_python: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    python = ("--python", str(tensorflow_python))
    done = envlock("capture", "-q", "-o", "a.lock", *python)
    assert done.returncode == 0, done.stderr
    wanted = ("--with", "numpy==2.2.6", "--with", "h5py==3.13.0")
    words = ("upgrade", "a.lock", "train.py:step", *wanted, *python, "-f", "json")
    done = envlock(*words, environ=environ, timeout=3600)
    assert done.returncode == 1, done.stdout + done.stderr
    report = json.loads(done.stdout)
    trials = {trial["packages"][0]["name"]: trial["verdict"] for trial in report["attachments"]["trials"][1:]}
    assert trials == {"h5py": "no-bit-changes", "numpy": "values-differ"}
    # Its sum is in the canary, too.
    assert [finding["rule"] for finding in report["findings"]] == ["values-differ", "kernels-differ"]
    assert {finding["where"]["fact"] for finding in report["findings"]} == {"packages.numpy.version"}
