"""Every table that has a row for each TensorFlow knows the newest one."""

from __future__ import annotations

import re
from pathlib import Path

from envlock.data.compatibility import find_ptx_cuda, load_compatibility_table
from envlock.data.determinism import load_source_table
from envlock.data.image_tables import load_image_tables
from envlock.runtime.release import minor, parse_release
from tests.diagnosis.environments import LINES

ROOT = Path(__file__).resolve().parents[2]


def test_every_table_knows_the_newest_tensorflow() -> None:
    builds, rows = load_image_tables().builds, load_compatibility_table().needs
    demo = re.search(r'^tensorflow = \["tensorflow-cpu==([\d.]+)', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    cuda = re.search(r"^CUDA_TENSORFLOWS \?= ([\d.]+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    newest_of = {
        "`build` in envlock/data/tensorflow_builds.toml": builds.build[-1].tensorflow,
        "`and_cuda` in envlock/data/tensorflow_builds.toml": builds.and_cuda[-1].tensorflow,
        **{
            f"`needs` {package} in envlock/data/compatibility.toml": max(
                (row.tensorflow for row in rows if row.package in (package, f"{package}-nightly")), key=parse_release
            )
            for package in ("numpy", "protobuf", "keras")
        },
        "`horizon` in envlock/data/determinism_sources.toml": load_source_table().horizon.through,
    }
    # What runs in every lane is the newest release, not a candidate.
    newest_release = {
        "LINES in tests/diagnosis/environments.py": LINES[-1],
        "the group `tensorflow` in pyproject.toml": demo[1] if demo else "0.0",
        "CUDA_TENSORFLOWS in Makefile": cuda[1] if cuda else "0.0",
    }
    newest = max(newest_of.values(), key=parse_release)
    lacking = [place for place, version in newest_of.items() if minor(version) != minor(newest)]
    release = (
        newest
        if "rc" not in newest
        else next(row.tensorflow for row in builds.build[::-1] if "rc" not in row.tensorflow)
    )
    lacking += [place for place, version in newest_release.items() if minor(version) != minor(release)]
    if find_ptx_cuda(newest) is None:
        lacking.append("`ptx` in envlock/data/compatibility.toml")
    assert lacking == [], f"TensorFlow {newest} is missing there: docs/contributing/tensorflow-version.md"
