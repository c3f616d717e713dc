"""Editable installs of every kind: the hook of an installer is no fact, and what is imported is one."""

from __future__ import annotations

import hashlib
import json
import os
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from envlock.runtime.collectors.packages import collect
from envlock.runtime.distributions import find_distributions
from envlock.runtime.editable_installs import list_roots
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host
from envlock.runtime.startup import collect_startup
from tests.machines import distribution, machine, write

NOTHING: dict[str, Any] = {"known": [], "modules": {}, "pth": {}, "sitecustomize": None, "usercustomize": None}
SETUPTOOLS = "import __editable___mine_1_0_finder; __editable___mine_1_0_finder.install()\n"
NAMESPACE = (
    "import sys, types, os;p = os.path.join('{project}', *('ns',));importlib = __import__('importlib.util');"
    "__import__('importlib.machinery');m = sys.modules.setdefault('ns', importlib.util.module_from_spec("
    "importlib.machinery.PathFinder.find_spec('ns', [os.path.dirname(p)])));"
    "m = m or sys.modules.setdefault('ns', types.ModuleType('ns'));"
    "mp = (m or []) and m.__dict__.setdefault('__path__',[]);(p not in mp) and mp.append(p)\n"
)
OLDER_NAMESPACE = (
    "import sys, types, os;has_mfs = sys.version_info > (3, 5);p = os.path.join("
    "sys._getframe(1).f_locals['sitedir'], *('ns', 'deep'));importlib = has_mfs and __import__('importlib.util');"
    "has_mfs and __import__('importlib.machinery');m = has_mfs and sys.modules.setdefault('ns.deep', "
    "importlib.util.module_from_spec(importlib.machinery.PathFinder.find_spec('ns.deep', [os.path.dirname(p)])));"
    "m = m or sys.modules.setdefault('ns.deep', types.ModuleType('ns.deep'));"
    "mp = (m or []) and m.__dict__.setdefault('__path__',[]);(p not in mp) and mp.append(p);"
    "m and setattr(sys.modules['ns'], 'deep', m)\n"
)
FINDER = "import sys\nMAPPING: dict[str, str] = {'mine': '{project}/mine'}\nNAMESPACES: dict[str, list[str]] = {}\n"


@dataclass
class Kind:
    """What an installer leaves in `site-packages`, as files; `{project}` stands for the folder of the project.

    `roots` are what it imports from, below that folder.
    """

    files: dict[str, str]
    roots: list[str]
    project: dict[str, str] = field(default_factory=lambda: {"pyproject.toml": "", "mine/__init__.py": "VALUE = 1\n"})


SRC = {"pyproject.toml": "", "src/mine/__init__.py": "VALUE = 1\n"}
KINDS = {
    "setuptools": Kind({"__editable__.mine-1.0.pth": SETUPTOOLS, "__editable___mine_1_0_finder.py": FINDER}, ["mine"]),
    "setuptools, src": Kind({"__editable__.mine-1.0.pth": "{project}/src\n"}, ["src"], SRC),
    "setuptools, namespace": Kind(
        {
            "__editable__.mine-1.0.pth": SETUPTOOLS,
            "__editable___mine_1_0_finder.py": FINDER,
            "mine-1.0-nspkg.pth": NAMESPACE + OLDER_NAMESPACE,
        },
        ["mine"],
    ),
    "hatchling": Kind({"_editable_impl_mine.pth": "{project}/src"}, ["src"], SRC),
    "hatchling, exact": Kind(
        {
            "_editable_impl_mine.pth": "import _editable_impl_mine\n",
            "_editable_impl_mine.py": "from editables.redirector import RedirectingFinder as F\nF.install()\n"
            "F.map_module('mine', '{project}/mine/__init__.py')",
        },
        ["mine"],
    ),
    "flit": Kind({"mine.pth": "{project}"}, [""]),
    "poetry": Kind({"mine.pth": "{project}\n"}, [""]),
    "pdm": Kind({"_editable_impl_mine.pth": "{project}/src\n", ".gitignore": "*"}, ["src"], SRC),
    "uv": Kind({"mine.pth": "{project}/src"}, ["src"], SRC),
    "scikit-build-core": Kind(
        {
            "_editable_skbc_mine.pth": "import _editable_skbc_mine\n{project}/src\n",
            "_editable_skbc_mine.py": "def install(x):\n    '/'\ninstall({'mine': '{project}/src/mine/__init__.py'})",
        },
        ["src", "src/mine"],
        SRC,
    ),
    "scikit-build-core, older": Kind(
        {
            "_mine_editable.pth": "import _mine_editable\n",
            "_mine_editable.py": "install({'mine': '{project}/mine/__init__.py'}, {})",
        },
        ["mine", ""],
    ),
    "meson-python": Kind(
        {
            "mine-editable.pth": "import _mine_editable_loader\n",
            "_mine_editable_loader.py": "install('mine', {'mine'}, '{project}/build/cp311', [])",
        },
        [""],
    ),
}


def make(folder: Path, kind: Kind, *, editable: bool = True, unlisted: str = "") -> Host:
    """Return a machine with an install of a kind; `unlisted` is left out of its RECORD."""
    project = write(folder / "project", dict(kind.project))
    site = write(folder / "site-packages", {})
    rows = ""
    for name, text in kind.files.items():
        content = text.replace("{project}", str(project))
        write(site, {name: content})
        digest = urlsafe_b64encode(hashlib.sha256(content.encode()).digest()).rstrip(b"=").decode()
        if name != unlisted:
            rows += f"{name},sha256={digest},{len(content)}\n"
    origin = {"url": project.as_uri(), "dir_info": {"editable": editable}}
    distribution(site, "mine", "1.0", {"RECORD": rows, "direct_url.json": json.dumps(origin)})
    return machine(folder / "root", site=site)


@pytest.mark.parametrize("name", KINDS)
def test_the_hook_of_an_installer_is_no_fact(name: str, tmp_path: Path) -> None:
    assert collect_startup(make(tmp_path, KINDS[name])) == NOTHING


@pytest.mark.parametrize("name", KINDS)
def test_what_an_editable_install_imports_from(name: str, tmp_path: Path) -> None:
    host = make(tmp_path, KINDS[name])
    found = list_roots(find_distributions(host)["mine"], str(tmp_path / "project"))
    assert found == [os.path.normpath(tmp_path / "project" / root) for root in KINDS[name].roots]


@pytest.mark.parametrize("name", KINDS)
def test_a_changed_source_is_another_fact(name: str, tmp_path: Path) -> None:
    host = make(tmp_path, KINDS[name])
    before = collect(host)["mine"]["source"]
    assert before.startswith("sha256:")
    assert collect(host)["mine"]["source"] == before
    module = next((tmp_path / "project").rglob("mine/__init__.py"))
    module.write_text("VALUE = 2\n")
    assert collect(host)["mine"]["source"] != before


def test_the_ways_of_installing_one_source_agree(tmp_path: Path) -> None:
    names = ["setuptools", "hatchling", "flit", "poetry", "uv"]
    found = {collect(make(tmp_path / name, KINDS[name]))["mine"]["source"] for name in names}
    assert len(found) == 1


def test_a_link_of_flit(tmp_path: Path) -> None:
    project = write(tmp_path / "project", {"mine/__init__.py": "", "pyproject.toml": ""})
    site = write(tmp_path / "site-packages", {})
    (site / "mine").symlink_to(project / "mine")
    origin = {"url": project.as_uri(), "dir_info": {"editable": True}}
    distribution(site, "mine", "1.0", {"RECORD": "mine,,\n", "direct_url.json": json.dumps(origin)})
    host = machine(tmp_path / "root", site=site)
    before = collect(host)["mine"]["source"]
    (project / "mine" / "__init__.py").write_text("x = 2\n")
    assert collect(host)["mine"]["source"] != before


@pytest.mark.parametrize("layout", [".", "src"])
def test_a_development_install_of_old_setuptools(layout: str, tmp_path: Path) -> None:
    """It has no `direct_url.json`: its metadata lies in the sources, which easy-install.pth adds to the path."""
    project = write(tmp_path / "project", {"setup.py": "", f"{layout}/mine.py": "VALUE = 1\n"})
    write(project / layout / "mine.egg-info", {"PKG-INFO": "Name: mine\nVersion: 1.0\n"})
    site = write(tmp_path / "site-packages", {"easy-install.pth": f"{project / layout}\n"})
    host = machine(tmp_path / "root", site=site)
    host.path = [str(site), str((project / layout).resolve())]
    before = collect(host)["mine"]
    assert (before["origin"]["editable"], before["origin"]["url"]) == (True, "file:")
    (project / layout / "mine.py").write_text("VALUE = 2\n")
    assert collect(host)["mine"]["source"] != before["source"]


def test_a_folder_that_is_gone_is_unknown(tmp_path: Path) -> None:
    host = make(tmp_path, Kind({"mine.pth": "{project}"}, [""], {}))
    (tmp_path / "project").rmdir()
    assert collect(host)["mine"]["source"] == Unavailable("its folder of sources is missing or empty", "no-source")


FOUND = KINDS["setuptools"].files
HOLES = {
    "that no RECORD lists": (FOUND, True, "__editable__.mine-1.0.pth"),
    "whose finder no RECORD lists": (FOUND, True, "__editable___mine_1_0_finder.py"),
    "of a package that is not editable": (FOUND, False, ""),
    "with another line": ({**FOUND, "__editable__.mine-1.0.pth": SETUPTOOLS + "import evil\n"}, True, ""),
    "with another statement": (
        {**FOUND, "__editable__.mine-1.0.pth": SETUPTOOLS.replace("\n", "; import os\n")},
        True,
        "",
    ),
    "with another finder": ({"__editable__.mine-1.0.pth": "import boot\n", "boot.py": ""}, True, ""),
    "with a namespace and more": ({"mine-nspkg.pth": NAMESPACE.replace("\n", ";import evil\n")}, True, ""),
    "with a namespace elsewhere": ({"mine-nspkg.pth": NAMESPACE.replace("'{project}'", "evil()")}, True, ""),
}


@pytest.mark.parametrize("hole", HOLES)
def test_startup_code_stays_a_fact(hole: str, tmp_path: Path) -> None:
    files, editable, unlisted = HOLES[hole]
    host = make(tmp_path, Kind(files, []), editable=editable, unlisted=unlisted)
    assert len(collect_startup(host)["pth"]) == 1


def test_a_finder_that_was_changed_after_the_installation_stays_a_fact(tmp_path: Path) -> None:
    host = make(tmp_path, KINDS["setuptools"])
    finder = tmp_path / "site-packages" / "__editable___mine_1_0_finder.py"
    finder.write_text(finder.read_text() + "import os; os.environ['TF_ENABLE_ONEDNN_OPTS'] = '0'\n")
    assert len(collect_startup(host)["pth"]) == 1
