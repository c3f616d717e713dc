"""A package beside the script is what `import` takes, so the installed one says nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from envlock.runtime.collectors import COLLECTORS
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host
from envlock.runtime.shadows import find_shadows
from tests.machines import complete, distribution, write


@pytest.mark.parametrize("package", ["tensorflow", "numpy", "keras"])
@pytest.mark.parametrize("file", ["{}.py", "{}/__init__.py"])
def test_what_lies_beside_the_script_is_named(
    package: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = complete(tmp_path / "machine")
    write(Path(machine.path[0]), {f"{package}/__init__.py": ""})
    here = tmp_path / "here"
    place = here / file.format(package)
    place.parent.mkdir(parents=True)
    place.touch()
    monkeypatch.chdir(here)
    reason = f"a {package} beside the script or in the current folder is imported instead of the installed one"
    for first in ("", str(here)):
        host = Host(machine.root, machine.environ, [first, *machine.path], machine.environ)
        assert Unavailable(reason, "shadowed") == COLLECTORS[package](host)
    later = Host(machine.root, machine.environ, [*machine.path, str(here)], machine.environ)
    assert not isinstance(COLLECTORS[package](later), Unavailable)
    assert sys.modules.get(package) is None or package == "numpy"


def shadowing(
    tmp_path: Path, entry: Path | str, *, variable: str = "", record: str = "sklearn/__init__.py,,\n"
) -> Host:
    """Return a machine with two packages, one under another name than its module's, and an entry before them."""
    machine = complete(tmp_path / "machine")
    (site,) = machine.path
    distribution(Path(site), "h5py", "3.1")
    write(Path(site), {"h5py/__init__.py": "", "sklearn/__init__.py": "", "tests/__init__.py": "", "enum.py": ""})
    distribution(Path(site), "scikit_learn", "1.5", {"RECORD": record})
    environ = {**machine.environ, "PYTHONPATH": variable}
    return Host(machine.root, environ, [str(entry), *machine.path], environ)


def hidden(host: Host) -> dict[str, str]:
    """Return the packages that cannot be told, and why."""
    found = COLLECTORS["packages"](host)
    assert isinstance(found, dict)
    return {name: each.reason for name, each in found.items() if isinstance(each, Unavailable)}


NAMESPACE = dict.fromkeys(
    (
        "google/protobuf/__init__.py",
        "google/cloud/storage/__init__.py",
        "google/rpc/__init__.py",
        "absl/__init__.py",
    ),
    "",
)


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["google/protobuf/__init__.py"], ["protobuf"]),
        (["google/cloud/storage.py"], ["storage"]),
        (["google/cloud/storage/__init__.py", "google/protobuf.so"], ["protobuf", "storage"]),
        (["google/other/__init__.py", "google/protobuf/notes.txt"], []),
        (["google/rpc/code.py", "google/cloud/storage.py"], ["storage"]),
        (["absl/flags/__init__.py"], []),
    ],
)
def test_a_part_of_a_namespace_package_hides_that_part(files: list[str], names: list[str], tmp_path: Path) -> None:
    """`google` has no `__init__`: each folder of the path adds to it, and the first that has a part gives it."""
    write(tmp_path / "checkout", dict.fromkeys(files, ""))
    host = shadowing(tmp_path, tmp_path / "checkout", variable=str(tmp_path / "checkout"))
    site = Path(host.path[-1])
    write(site, NAMESPACE)
    for name, folder in (("protobuf", "google/protobuf"), ("storage", "google/cloud/storage"), ("absl-py", "absl")):
        distribution(site, name, "5.1", {"RECORD": f"{folder}/__init__.py,,\n"})
    assert sorted(hidden(host)) == names


@pytest.mark.parametrize("file", ["h5py/__init__.py", "h5py.py", "h5py.cpython-311-x86_64-linux-gnu.so"])
def test_a_folder_of_pythonpath_hides_a_package(file: str, tmp_path: Path) -> None:
    write(tmp_path / "checkout", {file: ""})
    host = shadowing(tmp_path, tmp_path / "checkout", variable=str(tmp_path / "checkout"))
    assert hidden(host) == {"h5py": "a h5py in a folder of PYTHONPATH is imported instead of the installed one"}


@pytest.mark.parametrize(
    ("installed", "package"),
    [("six.py", "six"), ("_cffi_backend.cpython-311-x86_64-linux-gnu.so", "cffi")],
)
def test_a_module_of_one_file_can_be_hidden(installed: str, package: str, tmp_path: Path) -> None:
    module = installed.partition(".")[0]
    write(tmp_path / "checkout", {f"{module}.py": ""})
    host = shadowing(tmp_path, tmp_path / "checkout")
    site = Path(host.path[-1])
    write(site, {installed: ""})
    distribution(site, package, "1.17", {"RECORD": f"{installed},,\n"})
    distribution(site, "stubs", "1.17", {"RECORD": f"{module}.pyi,,\n"})
    where = "in an earlier folder of the import path"
    assert hidden(host) == {package: f"a {module} {where} is imported instead of the installed one"}


@pytest.mark.parametrize(
    "metadata",
    [
        {"installed-files.txt": "../yaml/__init__.py\nPKG-INFO\n"},
        {"installed-files.txt": "../_yaml.py\n../yaml.so\n"},
        {"top_level.txt": "_yaml\nyaml\n"},
    ],
)
def test_a_module_of_an_egg_or_of_debian_can_be_hidden(metadata: dict[str, str], tmp_path: Path) -> None:
    """An egg lists its files from its own folder; Debian leaves the list of files out."""
    write(tmp_path / "checkout", {"yaml.py": ""})
    host = shadowing(tmp_path, tmp_path / "checkout", variable=str(tmp_path / "checkout"))
    site = Path(host.path[-1])
    write(site, {"yaml/__init__.py": "", "other-1.0.egg-info/top_level.txt": "other\n"})
    write(site / "PyYAML-6.0-py3.11.egg-info", {"PKG-INFO": "Name: PyYAML\nVersion: 6.0\n", **metadata})
    assert hidden(host) == {"pyyaml": "a yaml in a folder of PYTHONPATH is imported instead of the installed one"}


def test_a_hidden_part_is_of_the_egg_that_has_its_package(tmp_path: Path) -> None:
    write(tmp_path / "checkout", {"google/protobuf.py": ""})
    host = shadowing(tmp_path, tmp_path / "checkout")
    site = Path(host.path[-1])
    write(site, {**NAMESPACE, "protos-5.1.egg-info/top_level.txt": "google\n"})
    assert list(hidden(host)) == ["protos"]


@pytest.mark.parametrize("file", ["six/__init__.py", "six.cpython-311-x86_64-linux-gnu.so"])
def test_what_goes_before_an_installed_module_in_its_own_folder_hides_it(file: str, tmp_path: Path) -> None:
    host = shadowing(tmp_path, tmp_path / "checkout")
    site = Path(host.path[-1])
    write(site, {"six.py": "", file: ""})
    info = distribution(site, "six", "1.17", {"RECORD": f"six.py,,\nother/{file},,\n"})
    assert hidden(host) == {"six": f"{file} beside it is imported instead of the installed six.py"}
    write(info, {"RECORD": f"six.py,,\n{file},,\n"})
    assert hidden(shadowing(tmp_path, tmp_path / "checkout")) == {}


def test_what_is_installed_earlier_on_the_path_is_not_hidden(tmp_path: Path) -> None:
    host = shadowing(tmp_path, tmp_path / "checkout")
    (site,) = host.path[1:]
    distribution(tmp_path / "later", "six", "1.17")
    write(tmp_path / "later", {"six.py": ""})
    write(tmp_path / "checkout", {"h5py/__init__.py": ""})
    write(Path(site), {"h5py/__init__.py": ""})
    host.path = [site, str(tmp_path / "later"), str(tmp_path / "checkout")]
    assert find_shadows(host) == {}


def test_the_first_that_hides_a_module_is_the_reason_and_is_looked_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("here", "checkout"):
        write(tmp_path / folder, {"h5py/__init__.py": ""})
    monkeypatch.chdir(tmp_path / "here")
    host = shadowing(tmp_path, "", variable=str(tmp_path / "checkout"))
    host.path.insert(1, str(tmp_path / "checkout"))
    found = find_shadows(host)
    where = "beside the script or in the current folder"
    assert {name: each.reason for name, each in found.items()} == {
        "h5py": f"a h5py {where} is imported instead of the installed one"
    }
    assert find_shadows(host) is found


def test_a_hidden_part_is_named_with_its_package(tmp_path: Path) -> None:
    write(tmp_path / "checkout", {"google/protobuf/__init__.py": ""})
    host = shadowing(tmp_path, tmp_path / "checkout", variable=str(tmp_path / "checkout"))
    write(Path(host.path[-1]), NAMESPACE)
    reason = "a google.protobuf in a folder of PYTHONPATH is imported instead of the installed one"
    assert find_shadows(host) == {"google.protobuf": Unavailable(reason, "shadowed")}


@pytest.mark.parametrize(("installed", "beside"), [("my-tool.py", "my-tool.py"), ("mine.old.py", "mine.py")])
def test_what_cannot_be_imported_is_not_hidden(installed: str, beside: str, tmp_path: Path) -> None:
    write(tmp_path / "checkout", {beside: ""})
    host = shadowing(tmp_path, tmp_path / "checkout")
    write(Path(host.path[-1]), {installed: ""})
    assert find_shadows(host) == {}


def test_what_no_installed_package_has_is_not_hidden(tmp_path: Path) -> None:
    write(tmp_path / "checkout", {"google/other/__init__.py": "", "google/notes/read.me": ""})
    host = shadowing(tmp_path, tmp_path / "checkout")
    write(Path(host.path[-1]), NAMESPACE)
    assert find_shadows(host) == {}


@pytest.mark.parametrize("file", ["lib/sklearn/__init__.py", "lib/sklearn.py"])
def test_a_folder_of_a_zip_file_hides_a_package(file: str, tmp_path: Path) -> None:
    with ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr(file, "")
    reason = "a sklearn in a zip file on the import path is imported instead of the installed one"
    assert hidden(shadowing(tmp_path, tmp_path / "evil.zip" / "lib")) == {"scikit-learn": reason}


@pytest.mark.parametrize("file", ["sklearn/__init__.py", "sklearn.py"])
def test_a_zip_file_hides_a_package(file: str, tmp_path: Path) -> None:
    with ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr(file, "")
    host = shadowing(tmp_path, tmp_path / "evil.zip")
    reason = "a sklearn in a zip file on the import path is imported instead of the installed one"
    assert hidden(host) == {"scikit-learn": reason}


def test_a_zip_file_with_a_distribution_hides_what_it_has_besides(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("extra-1.0.dist-info/METADATA", "")
        archive.writestr("sklearn/__init__.py", "")
    assert list(hidden(shadowing(tmp_path, tmp_path / "evil.zip"))) == ["scikit-learn"]


def test_a_package_beside_the_script_hides_any_installed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "here", {"h5py/__init__.py": "", "sklearn.py": ""})
    monkeypatch.chdir(tmp_path / "here")
    where = "beside the script or in the current folder is imported instead of the installed one"
    assert hidden(shadowing(tmp_path, "")) == {"h5py": f"a h5py {where}", "scikit-learn": f"a sklearn {where}"}


@pytest.mark.parametrize("package", ["tensorflow", "numpy", "keras"])
def test_what_computes_has_no_facts_where_pythonpath_hides_it(package: str, tmp_path: Path) -> None:
    write(tmp_path / "checkout", {f"{package}/__init__.py": ""})
    host = shadowing(tmp_path, tmp_path / "checkout", variable=str(tmp_path / "checkout"))
    (site,) = complete(tmp_path / "machine").path
    write(Path(site), {f"{package}/__init__.py": ""})
    found = COLLECTORS[package](host)
    reason = f"a {package} in a folder of PYTHONPATH is imported instead of the installed one"
    assert found == Unavailable(reason, "shadowed")


@pytest.mark.parametrize(
    "files",
    [
        {"h5py/data.txt": ""},  # a folder without __init__ yields to a package that comes later
        {"h5py": "#!/usr/bin/python3", "train.py": ""},  # a command, in the folder of the script `envlock`
        {"tests/__init__.py": ""},  # many projects have it, and many wheels ship one by mistake
        {"mine/__init__.py": "", "train.py": ""},
    ],
)
def test_what_hides_nothing_is_not_named(files: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path / "checkout", files)
    assert hidden(shadowing(tmp_path, tmp_path / "checkout")) == {}


def test_a_folder_with_metadata_is_another_installed_package(tmp_path: Path) -> None:
    """As `pip install --target` makes it, and `module load` puts on PYTHONPATH: its own version is recorded."""
    distribution(tmp_path / "target", "h5py", "3.9")
    write(tmp_path / "target", {"h5py/__init__.py": ""})
    host = shadowing(tmp_path, tmp_path / "target")
    assert hidden(host) == {}
    found = COLLECTORS["packages"](host)
    assert isinstance(found, dict)
    assert found["h5py"]["version"] == "3.9"


def test_the_standard_library_may_hide_its_backports(tmp_path: Path) -> None:
    assert hidden(shadowing(tmp_path, Path(os.__file__).parent, record="enum.py,,\n")) == {}


def test_a_damaged_zip_file_and_a_path_that_is_gone_hide_nothing(tmp_path: Path) -> None:
    (tmp_path / "no.zip").write_bytes(b"h5py/")
    assert hidden(shadowing(tmp_path, tmp_path / "no.zip")) == {}
    assert hidden(shadowing(tmp_path, tmp_path / "gone")) == {}
