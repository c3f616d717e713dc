"""The files of a package, as its RECORD lists them: wheels of one name and version can hold other code."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from envlock.runtime.distributions import find_distributions
from envlock.runtime.host import Host
from envlock.runtime.loaded.owners import describe_content
from tests.loaded.environment import Environment
from tests.machines import distribution

WHEEL = "Wheel-Version: 1.0\nTag: py3-none-any\n"
ROWS = ("acme/__init__.py,sha256=AAA,9", "acme/_c.abi3.so,sha256=BBB,99", '"acme/a,b.py",sha256=CCC,9')
LOCAL = "Tag: cp311-cp311-linux_x86_64\n"


def describe(folder: Path, rows: tuple[str, ...] = ROWS, **files: str) -> str | None:
    """Return what is said of a package with these files of metadata."""
    metadata = {"INSTALLER": "pip\n", "WHEEL": WHEEL, **files, "RECORD": "\n".join(rows) + "\n"}
    shutil.rmtree(folder, ignore_errors=True)
    distribution(folder, "acme", "1.0", metadata)
    return describe_content(find_distributions(Host(environ={}, path=[str(folder)]))["acme"])


def test_what_installers_add_or_order_otherwise_is_no_content(tmp_path: Path) -> None:
    made = (
        *reversed(ROWS),
        "acme/__pycache__/__init__.cpython-311.pyc,,",
        "../../../bin/acme,sha256=DDD,200",
        "acme-1.0.dist-info/INSTALLER,sha256=EEE,2",
        "acme-1.0.dist-info/RECORD,,",
        "acme/include/acme.h,sha256=FFF,9",
    )
    content = describe(tmp_path)
    assert content is not None
    assert content.startswith("1.0 ")
    assert describe(tmp_path, made, INSTALLER="uv\n", REQUESTED="") == content
    archive = '{"url": "file:///wheels/acme-1.0-py3-none-any.whl", "archive_info": {}}'
    assert describe(tmp_path, ROWS, **{"direct_url.json": archive}) == content


@pytest.mark.parametrize("place", range(len(ROWS)))
def test_another_file_is_another_content(place: int, tmp_path: Path) -> None:
    rows = [row.replace("sha256=", "sha256=Z") if at == place else row for at, row in enumerate(ROWS)]
    assert describe(tmp_path, tuple(rows)) != describe(tmp_path)


@pytest.mark.parametrize(
    "files",
    [
        {"INSTALLER": ""},
        {"INSTALLER": "conda\n"},
        {"WHEEL": LOCAL},
        {"direct_url.json": '{"url": "file:///mine", "dir_info": {"editable": true}}'},
        {"direct_url.json": '{"url": "https://a.b/c.git", "vcs_info": {"vcs": "git", "commit_id": "1"}}'},
    ],
    ids=["of the system", "of conda", "compiled here", "editable", "of a checkout"],
)
def test_what_no_wheel_describes_has_no_content(files: dict[str, str], tmp_path: Path) -> None:
    assert describe(tmp_path, ROWS, **files) is None


def install_acme(environment: Environment, digest: str, version: str = "1.0") -> None:
    """Install a package as pip does: its folder of metadata is a new one."""
    site = environment.folder / "site-packages"
    for each in site.glob("acme-*"):
        shutil.rmtree(each)
    row = f"acme.py,sha256={digest},9\n"
    distribution(site, "acme", version, {"INSTALLER": "pip\n", "WHEEL": WHEEL, "RECORD": row})


@pytest.mark.processes
def test_the_same_version_with_other_files_is_refused(environment: Environment) -> None:
    install_acme(environment, "AAA")
    environment.run("capture", "-q")
    install_acme(environment, "AAA")
    assert environment.ask() == []
    code = "import envlock; envlock.assert_locked(); print('locked'); import tensorflow; print('imported')"
    assert environment.script(code).stdout == "locked\nimported\n"

    install_acme(environment, "BBB")
    (line,) = environment.ask()
    assert line.startswith("x loaded.packages.acme: the same version with other files than the locked ones: ")
    done = environment.script(code)
    assert done.stdout == "locked\n"
    assert "loaded.packages.acme: the same version with other files" in done.stderr


@pytest.mark.processes
def test_another_version_is_one_difference(environment: Environment) -> None:
    install_acme(environment, "AAA")
    environment.run("capture", "-q")
    install_acme(environment, "BBB", "2.0")
    done = environment.run("verify", "--policy", "strict").stdout
    assert "packages.acme.version: locked 1.0, live 2.0" in done
    assert "loaded.packages" not in done


@pytest.mark.processes
@pytest.mark.parametrize("name", ["RECORD", "INSTALLER"])
def test_without_a_list_the_version_is_all_that_is_compared(environment: Environment, name: str) -> None:
    install_acme(environment, "AAA")
    environment.run("capture", "-q")
    install_acme(environment, "BBB")
    (file,) = (environment.folder / "site-packages").glob(f"acme-*/{name}")
    file.unlink()
    assert environment.ask() == []
