"""The battery sets what NumPy reads at import, also where something has imported NumPy before it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from envlock.guest import launch

pytestmark = pytest.mark.processes

ASKED = {"device": "cpu", "skip": [], "intra_op_threads": 2, "inter_op_threads": 2, "determinism": True}
NUMPY = """
import os
with open({log!r}, "a", encoding="utf-8") as file:
    print(os.environ.get("OPENBLAS_NUM_THREADS"), file=file)
raise ImportError("a stand-in that only notes its threads")
"""


def threads_at_import(tmp_path: Path, sitecustomize: str) -> list[str]:
    """Return OPENBLAS_NUM_THREADS as each import of NumPy saw it, where `sitecustomize` runs before the battery."""
    log = tmp_path / "log"
    (tmp_path / "numpy.py").write_text(NUMPY.format(log=str(log)), encoding="utf-8")
    (tmp_path / "sitecustomize.py").write_text(sitecustomize, encoding="utf-8")
    words = launch.build_text_arguments(launch.read("battery"), ASKED)
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)}
    ended = launch.ask_python(words, Path(sys.executable), timeout=60, environ=environ)
    assert [list(answer) for answer in ended.answers] == [["failed"]], ended.errors
    return log.read_text(encoding="utf-8").split()


def test_numpy_is_imported_with_one_thread(tmp_path: Path) -> None:
    assert threads_at_import(tmp_path, "") == ["1"]


IMPORTED = """
import sys, types
try:
    import numpy
except ImportError:
    pass
sys.modules["numpy"] = None
"""


@pytest.mark.parametrize("restored", ["", "import os; os.environ.pop('OPENBLAS_NUM_THREADS', None)\n"])
def test_where_numpy_was_imported_too_early_the_battery_begins_again_once(tmp_path: Path, restored: str) -> None:
    """Also where what runs at each start takes the variable away again: it does not begin for ever."""
    seen = threads_at_import(tmp_path, restored + IMPORTED)
    assert seen == ["None", "None" if restored else "1"]
