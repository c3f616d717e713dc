"""The README's first commands do what its picture shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs/picture.svg"


def check(python: str | Path) -> tuple[int, str, str]:
    """Return how running the README's commands in an environment compares with the picture."""
    argv = [sys.executable, str(ROOT / "tools/picture.py"), "--check"]
    environ = {**os.environ, "VIRTUAL_ENV": str(Path(python).parents[1])}
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout.strip(), done.stderr


@pytest.mark.slow
@pytest.mark.processes
def test_the_commands_print_what_the_picture_shows() -> None:
    assert check(sys.executable) == (0, "", "")


@pytest.mark.tensorflow
def test_they_do_with_tensorflow(tensorflow_python: Path) -> None:
    assert check(tensorflow_python) == (0, "", "")


def test_the_picture_shows_a_capture_a_match_and_a_refusal_and_needs_nothing_else() -> None:
    picture = PICTURE.read_text(encoding="utf-8")
    text = " ".join(" ".join(ET.fromstring(picture).itertext()).split())
    order = ["$ envlock capture", "TensorFlow", "$ envlock verify", "matches", "$ envlock verify", "does not match"]
    places = [text.find(word) for word in order[:4]] + [text.rfind(word) for word in order[4:]]
    assert -1 not in places
    assert places == sorted(places)
    assert text.endswith("$ echo $? 1")
    assert "url(http" not in picture
