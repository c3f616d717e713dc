"""Every table that has a row for each TensorFlow knows the newest one."""

from __future__ import annotations

import re
from pathlib import Path

from envlock.data.compatibility import compatibility_table, ptx_cuda
from envlock.data.determinism import sources_table
from envlock.data.images import image_tables
from envlock.runtime.release import minor, numbers
from tests.diagnosis.environments import LINES

ROOT = Path(__file__).resolve().parents[2]


def test_every_table_knows_the_newest_tensorflow() -> None:
    builds, rows = image_tables().builds, compatibility_table().needs
    demo = re.search(r'^tensorflow = \["tensorflow-cpu==([\d.]+)', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    cuda = re.search(r"^CUDA_TENSORFLOWS \?= ([\d.]+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    newest_of = {
        "`build` in envlock/data/tensorflow_builds.toml": builds.build[-1].tensorflow,
        "`and_cuda` in envlock/data/tensorflow_builds.toml": builds.and_cuda[-1].tensorflow,
        **{
            f"`needs` {package} in envlock/data/compatibility.toml": max(
                (row.tensorflow for row in rows if row.package == package), key=numbers
            )
            for package in ("numpy", "protobuf", "keras")
        },
        "`checked_through` in envlock/data/determinism_sources.toml": sources_table().checked_through,
        "LINES in tests/diagnosis/environments.py": LINES[-1],
        "the group `tensorflow` in pyproject.toml": demo[1] if demo else "0.0",
        "CUDA_TENSORFLOWS in Makefile": cuda[1] if cuda else "0.0",
    }
    newest = max(newest_of.values(), key=numbers)
    lacking = [place for place, version in newest_of.items() if minor(version) != minor(newest)]
    if ptx_cuda(newest) is None:
        lacking.append("`ptx` in envlock/data/compatibility.toml")
    assert lacking == [], f"TensorFlow {newest} is missing there: docs/contributing/tensorflow-version.md"
