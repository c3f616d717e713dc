"""Wheels whose own RECORD is wrong: found by their files, kept, and said of their publisher alone.

What pip 23.2 and uv 0.13 leave of such a RECORD was read from real installations of these wheels.
"""

from __future__ import annotations

import csv
import hashlib
import io
import sys
import zipfile
from collections.abc import Callable
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from envlock.lock.models import PackageIdentity
from envlock.packages import file_verification
from envlock.packages.installation import Installation
from envlock.packages.installed_distributions import describe_installed
from envlock.packages.prover import prove
from envlock.runtime.report import ERROR, WARNING
from tests.packages.offered import FolderIndex
from tests.packages.wheels import make_wheel, record_in, record_line

pytestmark = pytest.mark.processes  # bytecode is compared in a child

FILES = {"thing/__init__.py": b"x = 1\n", "thing/core.py": b"y = 2\n", "thing/a,b.txt": b"z"}
FACTS = {"version": "1.0", "wheel_tags": ["py3-none-any"]}
Change = Callable[[str], str]


def line(name: str) -> str:
    return record_line(name, FILES[name])


def quoted(record: str) -> str:
    return record.replace("thing/a,b.txt", '"thing/a,b.txt"')


RECORDS: dict[str, Change] = {
    "right": quoted,
    "a row is missing": lambda record: quoted(record.replace(line("thing/core.py"), "")),
    "no rows": lambda record: record[record.index("thing-1.0.dist-info/RECORD") :],
    "leading slashes": lambda record: quoted(
        record.replace("thing/__", "/thing/__").replace("thing/core", "/thing/core")
    ),
    "leading dots": lambda record: quoted(record.replace("thing/core", "./thing/core")),
    "leading parents": lambda record: quoted(record.replace("thing/core", "../thing/core")),
    "backslashes": lambda record: quoted(record.replace("thing/core", "thing\\core")),
    "a comma without quotes": lambda record: record,
    "another hash": lambda record: quoted(
        record.replace(line("thing/core.py"), record_line("thing/core.py", b"y = 3\n"))
    ),
    "hashes of a kind that is not allowed": lambda record: quoted(record.replace("sha256=", "md5=")),
    "another size": lambda record: quoted(record.replace(line("thing/core.py"), line("thing/core.py")[:-2] + "77\n")),
    "a file too many": lambda record: quoted(record_line("thing/gone.py", b"") + record),
    "no hashes": lambda record: quoted("".join(f"{each.rsplit(',', 2)[0]},,\n" for each in record.splitlines())),
}


def make_wrong(folder: Path, change: Change) -> Path:
    """Return a wheel with a RECORD that is not its own."""
    wheel = make_wheel(folder, files=FILES)
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["thing-1.0.dist-info/RECORD"] = change(record_in(wheel).decode()).encode()
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return wheel


def install(wheel: Path, site: Path, installer: str) -> None:
    """Install a wheel as pip or uv does."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
        names = archive.namelist()
    rows = list(csv.reader(io.StringIO(record_in(wheel).decode())))
    kept = [row[:3] for row in rows] if installer == "pip" else []
    if installer == "uv":
        stripped = [[row[0].lstrip("/"), *row[1:]] for row in rows]
        kept = [row for row in stripped if row[0].removeprefix("./") in names]
    listed = {row[0].removeprefix("./" if installer == "uv" else "") for row in kept}
    kept += [[name, "", ""] for name in names if name not in listed]
    (site / "thing-1.0.dist-info/INSTALLER").write_text(f"{installer}\n")
    kept.append(["thing-1.0.dist-info/INSTALLER", "", ""])
    with (site / "thing-1.0.dist-info/RECORD").open("w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(kept)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "venv/lib" / "python{}.{}".format(*sys.version_info) / "site-packages"
    folder.mkdir(parents=True)
    return folder


def prove_it(wheel: Path, site: Path, tmp_path: Path) -> PackageIdentity:
    """Return what `envlock capture --hashes` finds of the installed package."""
    package = describe_installed("thing", FACTS, PathDistribution(site / "thing-1.0.dist-info"))
    return prove([package], FolderIndex(wheel.parent), known={}).packages["thing"]


def verify(site: Path, identity: PackageIdentity | None = None) -> dict[str, list[str]]:
    """Return severity -> messages of the deep check."""
    place = Installation(site.parents[2], (site,))
    locked = {} if identity is None else {"thing": identity}
    found = file_verification.verify_files(file_verification.survey(place), Path(sys.executable), locked)
    return {level: [each.message for each in found if each.severity == level] for level in (ERROR, WARNING)}


@pytest.mark.parametrize("installer", ["pip", "uv"])
@pytest.mark.parametrize("record", RECORDS)
def test_the_archive_decides_and_the_publisher_is_named(
    tmp_path: Path, site: Path, record: str, installer: str
) -> None:
    if (record, installer) == ("a comma without quotes", "uv"):
        pytest.skip("uv refuses such a wheel")
    wheel = make_wrong(tmp_path / "index", RECORDS[record])
    install(wheel, site, installer)
    found = prove_it(wheel, site, tmp_path)
    assert found.reason is None
    assert found.wheel is not None
    assert found.wheel.sha256 == hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert verify(site, found)[ERROR] == []
    if (record, installer) == ("leading dots", "uv"):
        return  # uv copies these rows, which name the right files
    says = found.wrong_record is not None
    assert says is (record not in ("right", "another size", "a comma without quotes", "no hashes"))
    # The lockfile is needed only where a RECORD and a file contradict each other.
    is_plain = record not in ("another hash", "a file too many", "hashes of a kind that is not allowed")
    assert (verify(site)[ERROR] == []) is (is_plain or (record, installer) == ("a file too many", "uv"))


@pytest.mark.parametrize("installer", ["pip", "uv"])
@pytest.mark.parametrize("record", RECORDS)
def test_a_changed_file_of_such_a_wheel_is_still_found(tmp_path: Path, site: Path, record: str, installer: str) -> None:
    if (record, installer) == ("a comma without quotes", "uv"):
        pytest.skip("uv refuses such a wheel")
    wheel = make_wrong(tmp_path / "index", RECORDS[record])
    install(wheel, site, installer)
    whole = prove_it(wheel, site, tmp_path)
    (site / "thing/core.py").write_bytes(b"y = 4\n")
    found = prove_it(wheel, site, tmp_path)
    assert found.wheel is None
    assert found.reason is not None
    assert "thing/core.py has a different hash" in found.reason
    # Without a hash in the installed RECORD, only a proof can tell.
    has_hash = any(each.startswith("thing/core.py") for each in verify(site, whole)[ERROR])
    unhashed = record in ("a row is missing", "no rows", "no hashes")
    assert has_hash is not (unhashed or (installer == "uv" and record in ("leading parents", "backslashes")))


def test_what_is_said_of_the_publisher(tmp_path: Path, site: Path) -> None:
    wheel = make_wrong(tmp_path / "index", RECORDS["leading slashes"])
    install(wheel, site, "pip")
    found = prove_it(wheel, site, tmp_path)
    assert found.wrong_record is not None
    assert found.wrong_record.what == (
        "the wheel's own RECORD omits 2 files, such as thing/__init__.py, and lists 2 files that its archive does not "
        "have, such as /thing/__init__.py"
    )
    assert verify(site, found) == {
        ERROR: [],
        WARNING: [
            "thing-1.0.dist-info: 2 of its rows in RECORD do not follow the specification, such as /thing/__init__.py"
        ],
    }
