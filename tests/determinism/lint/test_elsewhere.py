"""What depends on other files: one that lists data for a program, and names that a package passes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.determinism.lint.test_program import rules

LIST = "import glob\n\n\ndef paths():\n    return glob.glob('*.wav')\n"
WRITE = "import glob\n\nwith open('l', 'w') as stream:\n    for path in glob.glob('*'):\n        stream.write(path)\n"
TRAIN = "import tensorflow as tf\n"


def test_a_listing_without_tensorflow_counts_for_a_program_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {
        "its program reads data": rules(tmp_path, monkeypatch, {"a.py": LIST, "train.py": f"import a\n{TRAIN}"}),
        "nothing imports it": rules(tmp_path, monkeypatch, {"a.py": LIST, "train.py": TRAIN}),
        "it writes a file": rules(tmp_path, monkeypatch, {"a.py": WRITE, "train.py": TRAIN}),
        "nothing has data": rules(tmp_path, monkeypatch, {"a.py": WRITE, "train.py": "import json\n"}),
    }
    assert found == {
        "its program reads data": {"a.py": ["ENV303"]},
        "nothing imports it": {},
        "it writes a file": {"a.py": ["ENV303"]},
        "nothing has data": {},
    }
