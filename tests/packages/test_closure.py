"""The distributions that entry points can import, in environments made of files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envlock.packages.closure import find_imported_distributions
from tests.machines import write
from tests.packages.installed import Prefix


class Environment(Prefix):
    """An environment beside a project with one program."""

    def package(self, name: str, source: str = "", metadata: str = "", **files: str) -> None:
        """Install a package with its code and further lines of metadata."""
        self.install(name, "1.0", {f"{name}/__init__.py": source, **files})
        if metadata:
            text = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{metadata}"
            write(self.site / f"{name}-1.0.dist-info", {"METADATA": text})

    def held(self, program: str) -> list[str]:
        """Return what a program can import."""
        write(self.root / "project", {"train.py": program})
        return list(find_imported_distributions(["train.py"], self.root / "project", self.place))


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Environment(tmp_path)


def test_imports_and_requirements_are_followed(environment: Environment) -> None:
    environment.package("keras", "try:\n    import pandas\nexcept ImportError: ...\n", "Requires-Dist: h5py>=3\n")
    environment.package("pandas", "def f():\n    from dateutil import tz\n")
    environment.install("python_dateutil", "2.9", {"dateutil/__init__.py": ""})
    for name in ("h5py", "scipy", "flask"):
        environment.package(name)
    assert environment.held("import keras\n") == ["h5py", "keras", "pandas", "python-dateutil"]
    assert environment.held("import scipy.linalg\n") == ["scipy"]
    assert environment.held("import json, missing\n") == []


def test_requirements_follow_markers_and_extras(environment: Environment) -> None:
    asked = 'Requires-Dist: b[fast]\nRequires-Dist: c; python_version < "3"\nRequires-Dist: absent\n'
    environment.package("a", metadata=asked)
    extras = 'Requires-Dist: d; extra == "fast"\nRequires-Dist: c; extra == "slow"\n'
    environment.package("b", metadata=f"Provides-Extra: fast\nProvides-Extra: slow\n{extras}")
    for name in "cd":
        environment.package(name)
    assert environment.held("import a\n") == ["a", "b", "d"]
    assert environment.held("import b\n") == ["b"]


def test_what_tensorflow_requires_counts_before_it_is_installed(environment: Environment) -> None:
    extras = 'Provides-Extra: and-cuda\nRequires-Dist: nvidia-cudnn-cu12; extra == "and-cuda"\n'
    environment.package("tensorflow", metadata=f"Requires-Dist: tf-keras\n{extras}")
    assert environment.held("import tensorflow as tf\n") == ["nvidia-cudnn-cu12", "tensorflow", "tf-keras"]


def test_the_tests_of_a_library_do_not_count(environment: Environment) -> None:
    tests = {"numpy/tests/test_a.py": "import scipy\n", "numpy/a_test.py": "import scipy\n"}
    environment.package("numpy", **tests)
    environment.package("scipy")
    assert environment.held("import numpy\n") == ["numpy"]


def test_a_namespace_is_shared(environment: Environment) -> None:
    environment.install("protobuf", "7", {"google/protobuf/__init__.py": "", "google/_upb/_message.abi3.so": ""})
    environment.install("google_auth", "2", {"google/auth/__init__.py": "import rsa\n"})
    environment.install("google_cloud_storage", "2", {"google/cloud/storage/__init__.py": ""})
    environment.package("rsa")
    assert environment.held("from google import protobuf\n") == ["protobuf"]
    assert environment.held("import google._upb._message\n") == ["protobuf"]
    assert environment.held("from google.auth import x\n") == ["google-auth", "rsa"]
    assert environment.held("from google.cloud import storage\n") == ["google-cloud-storage"]
    assert environment.held("import google\n") == ["google-auth", "google-cloud-storage", "protobuf", "rsa"]


def test_single_modules_and_extension_modules_are_found(environment: Environment) -> None:
    environment.install("six", "1", {"six.py": ""})
    environment.install("fast_thing", "1", {"_fast.cpython-311-x86_64-linux-gnu.so": "", "_fast-1.pth": ""})
    assert environment.held("import six\n") == ["fast-thing", "six"]


def test_what_runs_at_every_start_and_plugins_are_held(environment: Environment) -> None:
    environment.install("starter", "1", {"starter.pth": "import starter\n", "starter/__init__.py": ""})
    environment.install("spaces", "1", {"spaces-1-nspkg.pth": "import sys\n", "spaces/a.py": ""})
    environment.install("device", "1", {"tensorflow-plugins/device.so": ""})
    environment.install("hook", "1", {"sitecustomize.py": "import extra\n"})
    environment.package("extra")
    assert environment.held("") == ["device", "extra", "hook", "starter"]


def test_development_tools_are_followed_for_the_project_only(environment: Environment) -> None:
    environment.package("keras", "from IPython import display\nimport pip\n")
    environment.install("ipython", "9", {"IPython/__init__.py": "import psutil\n"})
    for name in ("psutil", "pip"):
        environment.package(name)
    assert environment.held("import keras\n") == ["keras"]
    assert environment.held("import IPython\n") == ["psutil"]


def test_a_checkout_is_read_where_it_lies(environment: Environment, tmp_path: Path) -> None:
    write(tmp_path / "my lib", {"src/lib/__init__.py": "", "src/lib/deep/part.py": "import numpy\n", "setup.py": ""})
    environment.package("numpy")
    environment.install("my-lib", "1", {})
    place = (tmp_path / "my lib").as_uri()
    origin = json.dumps({"url": place, "dir_info": {"editable": True}})
    write(environment.site / "my-lib-1.dist-info", {"direct_url.json": origin})
    assert environment.held("import lib.deep\n") == ["my-lib", "numpy"]
    assert environment.held("import setup\n") == []


def test_a_distribution_without_a_list_of_files_is_known_by_its_name(environment: Environment) -> None:
    environment.package("some_thing", "import numpy\n", "Requires-Dist: six\n")
    environment.package("numpy")
    environment.package("six")
    (environment.site / "some_thing-1.0.dist-info/RECORD").unlink()
    assert environment.held("import some_thing\n") == ["six", "some-thing"]


def test_a_broken_record_stops_nothing(environment: Environment) -> None:
    record = environment.install("numpy", "2", {"numpy/__init__.py": ""})
    record.write_bytes(record.read_bytes() + b'"odd,name.py",,\n/gone.py,,\nnumpy/gone.py,,\n"\n')
    assert environment.held("import numpy\n") == ["numpy"]


def test_each_package_is_told_with_the_shortest_way_to_it(environment: Environment) -> None:
    environment.package("keras", "import numpy\nimport pandas\n", "Requires-Dist: h5py\n")
    environment.package("h5py", "import numpy\n")
    environment.package("pandas", "import numpy\nimport keras\n")
    environment.package("numpy")
    environment.install("hook", "1", {"hook.pth": "import hook\n"})
    write(environment.root / "project", {"train.py": "import keras\n"})
    assert find_imported_distributions(["train.py"], environment.root / "project", environment.place) == {
        "h5py": "required by keras",
        "hook": "loaded at start",
        "keras": "imported by train.py",
        "numpy": "imported by keras",
        "pandas": "imported by keras",
    }


def test_what_a_library_imports_is_kept_by_its_record(environment: Environment, tmp_path: Path) -> None:
    environment.package("keras", "import numpy\n")
    environment.package("numpy")
    environment.package("scipy")
    assert environment.held("import keras\n") == ["keras", "numpy"]
    source = environment.site / "keras/__init__.py"
    source.write_text("import scipy\n", encoding="utf-8")
    assert environment.held("import keras\n") == [
        "keras",
        "numpy",
    ]  # its RECORD is as before: `verify --deep` is for that
    for cached in (tmp_path / "cache/envlock/imports").iterdir():
        cached.write_text(cached.read_text(encoding="ascii").rpartition("\n")[0], encoding="ascii")
    assert environment.held("import keras\n") == ["keras", "scipy"]
    environment.package("keras", "import h5py\n")
    environment.package("h5py")
    assert environment.held("import keras\n") == ["h5py", "keras"]
    (tmp_path / "cache").rename(tmp_path / "other")
    (tmp_path / "cache").write_text("", encoding="ascii")
    assert environment.held("import keras\n") == ["h5py", "keras"]
