"""What Python code imports, told without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.packages.imports import find_entry_file, find_library_imports, find_project_imports
from envlock.runtime.errors import UsageError
from tests.machines import write

LIBRARY = b"""\
import numpy as np, scipy.linalg
from google.protobuf import message  # a comment, here
from . import own
from .other import thing
try:
    import pandas
except ImportError:
    pandas = None
def late():
    from sklearn import (
        linear_model)
    return importlib.import_module("torch.nn")
jax = LazyModule("jax", pip_name="jax")
probability = LazyLoader("p", globals(), "tensorflow_probability")
text = "import nothing"
# import nobody
>>> import nowhere
"""


def test_a_library_imports_what_its_statements_and_texts_name() -> None:
    plain = {"numpy", "scipy.linalg", "google.protobuf.message", "pandas", "sklearn", "torch.nn", "jax"}
    assert set(find_library_imports(LIBRARY)) - {"p"} == {*plain, "tensorflow_probability"}


def test_the_first_line_counts() -> None:
    assert list(find_library_imports(b"import numpy")) == ["numpy"]


PROJECT = {
    "train.py": "import numpy\nimport beside\nfrom pkg import model\nfrom pkg.late import *\n",
    "beside.py": "import h5py\n",
    "unused.py": "import pandas\n",
    "pkg/__init__.py": "import absl.flags\n",
    "pkg/model.py": "from . import layers\nfrom .deep.blocks import Block\ndef f():\n    import keras\n",
    "pkg/layers.py": "import importlib\nimportlib.import_module('torch.nn')\nimport pkg.model\n",
    "pkg/deep/blocks.py": "from ..helpers import x\nfrom tensorflow import (\n    keras as k,\n    data,\n)\n",
    "pkg/helpers.py": "import yaml\n",
    "pkg/late.py": "import six\n",
    "pkg/forgotten.py": "import scipy\n",
    "src/lib/__init__.py": "",
    "src/lib/__main__.py": "import lib.part, rich\n",
    "src/lib/part.py": "import attrs\n",
}


def test_a_project_is_followed_through_its_own_modules(tmp_path: Path) -> None:
    write(tmp_path, PROJECT)
    by_train = {"absl.flags", "h5py", "importlib", "keras", "numpy", "six", "tensorflow.data", "tensorflow.keras"}
    assert set(find_project_imports(["train.py"], tmp_path)) == {*by_train, "torch.nn", "yaml"}
    assert set(find_project_imports(["pkg.helpers"], tmp_path)) == {"absl.flags", "yaml"}
    assert set(find_project_imports(["lib", "pkg/helpers.py"], tmp_path)) == {"absl.flags", "attrs", "rich", "yaml"}


def test_modules_lie_beside_a_script_but_not_beside_a_module(tmp_path: Path) -> None:
    files = {"tools/run.py": "import near\n", "tools/near.py": "import numpy\n", "tools/__init__.py": ""}
    write(tmp_path, files)
    assert set(find_project_imports(["tools/run.py"], tmp_path)) == {"numpy"}
    assert set(find_project_imports(["tools.run"], tmp_path)) == {"near"}


def test_an_entry_point_is_a_file_or_a_module(tmp_path: Path) -> None:
    write(tmp_path, PROJECT)
    files = {"train.py": "train.py", "train": "train.py", "pkg.model": "pkg/model.py", "lib": "src/lib/__main__.py"}
    assert {entry: find_entry_file(entry, tmp_path) for entry in files} == {
        entry: tmp_path / file for entry, file in files.items()
    }


@pytest.mark.parametrize(
    "entry", ["", "missing.py", "pkg.missing", "pkg", "..", "pkg/missing", "../other.py", "/etc/hosts"]
)
def test_an_entry_point_that_does_not_exist_is_refused(entry: str, tmp_path: Path) -> None:
    write(tmp_path, {"mine/pkg/model.py": "", "other.py": ""})
    with pytest.raises(UsageError, match="no entry point"):
        find_project_imports([entry], tmp_path / "mine")


@pytest.mark.parametrize("source", [b"import (", b"\0", b"x = " + b"(" * 3000 + b")" * 3000, b"#" * 3_000_000])
def test_a_file_that_is_not_python_is_refused(source: bytes, tmp_path: Path) -> None:
    write(tmp_path, {"train.py": "import model\n", "model.py": source})
    with pytest.raises(UsageError, match=r"cannot read .*model\.py"):
        find_project_imports(["train.py"], tmp_path)
