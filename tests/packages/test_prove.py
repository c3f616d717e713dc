"""Which index file an installed distribution came from: the proof, and every reason why there is none."""

from __future__ import annotations

import hashlib
import re
import socket
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pytest
import requests

from envlock.lock.models import Lockfile, PackageIdentity, WheelFile
from envlock.packages.indexes.online import Glance, Whole
from envlock.packages.indexes.page import IndexFile, choose
from envlock.packages.indexes.ranges import BadWheel
from envlock.packages.installed_distributions import InstalledPackage, describe_installed
from envlock.packages.local_wheels import Made, Workshop
from envlock.packages.proofs import describe_proofs
from envlock.packages.prover import prove
from envlock.packages.sources import Source
from envlock.runtime.errors import EnvlockError, OutsideError
from envlock.runtime.files.record_rows import get_common_content, hash_content, parse_rows
from envlock.web.web_errors import explain_failure
from tests.locks import document
from tests.packages.wheels import make_wheel, record_in

HOME = "https://index.example/simple/"
RECORD = "six.py,sha256=aaaa,10\nsix-1.17.0.dist-info/METADATA,sha256=bbbb,20\nsix-1.17.0.dist-info/RECORD,,\n"
OTHER = RECORD.replace("aaaa", "AAAA")
INSTALLED_RECORD = RECORD + "six-1.17.0.dist-info/INSTALLER,sha256=cccc,4\n__pycache__/six.cpython-311.pyc,,\n"
COMMON = get_common_content(parse_rows(RECORD))
CONTENT = hash_content(COMMON)
SIX = InstalledPackage("six", "1.17.0", ("py2-none-any", "py3-none-any"), "index", None, COMMON, None)
WHEEL = "six-1.17.0-py2.py3-none-any.whl"
HASH = hashlib.sha256(b"the wheel").hexdigest()


@dataclass
class FakeIndex:
    """An index in memory: file name -> its RECORD; `whole` overrides what the bytes of a file hold."""

    records: dict[str, str]
    whole: dict[str, str] = field(default_factory=dict)
    ranges: bool = True
    error: EnvlockError | None = None
    asked: list[str] = field(default_factory=list)

    def files(self, name: str) -> list[IndexFile]:
        self.asked.append(name)
        if self.error is not None:
            raise self.error
        return [file(each) for each in self.records]

    def glance(self, file: IndexFile) -> Glance | None:
        self.asked.append(f"RECORD of {file.name}")
        return Glance(self.records[file.name], 9) if self.ranges else None

    def fetch(self, file: IndexFile) -> Whole:
        self.asked.append(f"all of {file.name}")
        return Whole(HASH, 9, self.whole.get(file.name, self.records[file.name]))

    def archive(self, file: IndexFile) -> Path:
        raise AssertionError("nothing is built")


def file(name: str, **changes: Any) -> IndexFile:
    """Return a file of the index."""
    url = f"https://user:secret@files.example/{name}?token=secret#sha256={HASH}"
    whole = IndexFile(name, url, HASH, 9, yanked=False, metadata_sha256=None, index_url=HOME)
    return replace(whole, **changes)


def proven(proof: Literal["file", "record"] = "file", name: str = WHEEL) -> PackageIdentity:
    """Return the identity that a proof comes to; neither credentials nor query are kept."""
    url = f"https://files.example/{name}"
    wheel = WheelFile(name=name, sha256=HASH, size=9, url=url, index=HOME)
    return PackageIdentity(
        version="1.17.0",
        content=CONTENT,
        origin="index",
        proof=proof,
        wheel=wheel,
        reason=None,
    )


def ask(index: FakeIndex | None, each: InstalledPackage = SIX, **options: Any) -> PackageIdentity:
    """Return what is found of one package."""
    return prove([each], index, **{"known": {}, **options}).packages[each.name]


def test_a_wheel_whose_record_fits_is_read_whole_and_hashed() -> None:
    index = FakeIndex({WHEEL: RECORD})
    assert ask(index) == proven()
    assert index.asked == ["six", f"RECORD of {WHEEL}", f"all of {WHEEL}"]


@pytest.mark.parametrize("yanked", [True, False])
def test_a_yanked_release_is_worth_a_word(yanked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    index = FakeIndex({WHEEL: RECORD})
    monkeypatch.setattr(index, "files", lambda name: [file(WHEEL, yanked=yanked)])
    said: list[str] = []
    assert ask(index, say=said.append) == proven()
    words = "warning: six 1.17.0 is yanked: its index says that its maintainers ask not to use it"
    assert said == ([words] if yanked else [])


def test_a_damaged_wheel_leaves_one_package_unproven() -> None:
    class Damaged(FakeIndex):
        def files(self, name: str) -> list[IndexFile]:
            return [each for each in super().files(name) if each.name.startswith(name)]

        def glance(self, file: IndexFile) -> Glance | None:
            if file.name == WHEEL:
                raise BadWheel(f"{file.name} is not a valid wheel: truncated", hint="use another index")
            return super().glance(file)

    other = SIX._replace(name="seven")
    index = Damaged({WHEEL: RECORD, WHEEL.replace("six", "seven", 1): RECORD})
    found = prove([SIX, other], index, known={}).packages
    assert (found["six"].wheel, found["six"].reason) == (None, f"{WHEEL} is not a valid wheel: truncated")
    assert found["seven"].wheel is not None


def test_an_index_without_ranges_costs_the_whole_wheel() -> None:
    index = FakeIndex({WHEEL: RECORD}, ranges=False)
    assert ask(index) == proven()


def test_of_two_builds_the_one_with_the_same_files_is_taken() -> None:
    rebuilt = "six-1.17.0-1-py2.py3-none-any.whl"
    index = FakeIndex({WHEEL: OTHER, rebuilt: RECORD})
    assert ask(index) == proven(name=rebuilt)
    assert f"all of {WHEEL}" not in index.asked


def test_one_name_with_two_hashes_is_tried_in_the_order_of_the_indexes() -> None:
    other = file(WHEEL, sha256="0" * 64, index_url="https://mirror.example/simple/")
    unnamed = file(WHEEL, sha256=None, index_url="https://third.example/simple/")
    for offered in ([file(WHEEL), other, unnamed], [unnamed, other, file(WHEEL)]):
        assert choose(offered, "six", "1.17.0", SIX.tags).wheels == offered


def test_a_wheel_that_was_renamed_for_another_platform_is_found() -> None:
    each = SIX._replace(tags=("cp311-cp311-linux_x86_64",))
    renamed = "six-1.17.0-cp311-cp311-manylinux_2_17_x86_64.whl"
    others = {"six-1.17.0-cp310-cp310-manylinux_2_17_x86_64.whl": OTHER, "six-1.17.0-py3-none-any.whl": OTHER}
    assert ask(FakeIndex({**others, renamed: RECORD}), each) == proven(name=renamed)


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ({}, "six is not on an index; only its file hashes are known"),
        (
            {"six-1.16.0-py2.py3-none-any.whl": RECORD},
            "version 1.17.0 of six is not on an index; only its file hashes are known",
        ),
        (
            {"six-1.17.0.tar.gz": ""},
            "the index has only a source archive of six 1.17.0, so the wheel was built locally; only its file hashes "
            "are known",
        ),
        (
            {"six-1.17.0-cp312-cp312-win_amd64.whl": RECORD},
            "the index has no wheel of six 1.17.0 for py2-none-any or py3-none-any; only its file hashes are known",
        ),
        ({WHEEL: OTHER}, f"the installed files are not those of {WHEEL}: six.py has a different hash"),
    ],
)
def test_what_cannot_be_proven_says_why(records: dict[str, str], reason: str) -> None:
    found = ask(FakeIndex(records))
    assert (found.wheel, found.proof, found.reason, found.content) == (None, None, reason, CONTENT)


@pytest.mark.parametrize(
    ("file", "hint"),
    [
        (
            "six-1.17.0.tar.gz",
            ["hint: `envlock capture --hashes --build` builds the wheels of checkouts, folders and source archives"],
        ),
        ("six-1.17.0-cp312-cp312-win_amd64.whl", []),
    ],
)
def test_how_a_wheel_is_built_is_said_where_its_sources_are_known(file: str, hint: list[str]) -> None:
    identity = {"packages": {"six": ask(FakeIndex({file: ""})).model_dump()}}
    assert list(describe_proofs(Lockfile.model_validate(document(identity=identity))))[2:] == hint


@pytest.mark.parametrize(
    ("count", "names"),
    [(1, "package-0"), (3, "package-0, package-1, package-2"), (5, "package-0, package-1, package-2 and 2 more")],
)
def test_that_only_this_machine_has_a_wheel_is_said(count: int, names: str) -> None:
    proven = ask(FakeIndex({WHEEL: RECORD}))
    assert proven.wheel is not None
    local = proven.model_copy(update={"wheel": proven.wheel.model_copy(update={"url": None, "index": None})})
    packages = {"pip": proven.model_dump(), **{f"package-{number}": local.model_dump() for number in range(count)}}
    assert list(describe_proofs(Lockfile.model_validate(document(identity={"packages": packages}))))[1:] == [
        f"hint: another machine cannot download the wheels of {names}: to build there, copy the wheelhouse, or "
        "reinstall them from an index on the web and capture again"
    ]


def test_that_the_project_itself_is_left_out_is_said() -> None:
    """An image of such a lockfile would lack the very program."""
    identity = {"packages": {"six": ask(FakeIndex({"six-1.17.0.tar.gz": ""})).model_dump()}}
    lock = document(identity=identity, project={"name": "segment"})
    hint = (
        "hint: the project's own package, segment, is left out: if it is installed and belongs into an image, use "
        "`envlock capture --hashes --build`"
    )
    assert hint in list(describe_proofs(Lockfile.model_validate(lock)))
    lock["project"] = {"name": "six"}
    assert not [line for line in describe_proofs(Lockfile.model_validate(lock)) if "own package" in line]


def test_offline_asks_nobody_and_keeps_what_still_holds() -> None:
    assert ask(None).reason == "no index was used (--offline)"
    assert ask(None, known={"six": proven("record")}) == proven("record")


def test_what_was_proven_is_not_asked_for_again() -> None:
    index = FakeIndex({})
    assert ask(index, known={"six": proven()}) == proven()
    assert index.asked == []


@pytest.mark.parametrize(
    ("each", "earlier"),
    [
        (SIX._replace(files=get_common_content(parse_rows(OTHER))), proven()),
        (SIX._replace(version="1.18.0"), proven()),
        (SIX, proven("record")),  # weaker than what is asked for now
    ],
)
def test_an_earlier_proof_of_other_files_or_of_less_is_not_taken(
    each: InstalledPackage, earlier: PackageIdentity
) -> None:
    index = FakeIndex({WHEEL: RECORD})
    ask(index, each, known={"six": earlier})
    assert index.asked[0] == "six"


@pytest.mark.parametrize(
    ("files", "is_bundled"),
    [
        ({}, False),
        ({"module.py": b"patched"}, True),
        ({"module.py": b"patched once more"}, False),
        (None, False),
    ],
)
@pytest.mark.parametrize("name", ["setuptools", "pkg-resources", "pip"])
def test_what_the_distributions_venv_installs_is_found_there(
    name: str, files: dict[str, bytes] | None, is_bundled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = name.replace("-", "_")
    own = record_in(make_wheel(tmp_path / "other", written, "66.1.1", {"module.py": b"patched"})).decode()
    monkeypatch.setattr("envlock.packages.prover.BUNDLED", tmp_path / "system")
    wheel = f"{written}-66.1.1-py3-none-any.whl"
    bundled = tmp_path / "system" / wheel
    if files:
        make_wheel(bundled.parent, written, "66.1.1", files)
    elif files is None:
        bundled.parent.mkdir()
        bundled.write_bytes(b"damaged")
    each = InstalledPackage(name, "66.1.1", ("py3-none-any",), "index", None, get_common_content(parse_rows(own)), None)
    workshop = Workshop(Path(sys.executable), tmp_path / "cache")
    found = prove([each], FakeIndex({wheel: RECORD}), known={}, here=workshop).packages[name]
    if is_bundled and name != "pip":
        assert found.wheel is not None
        digest = hashlib.sha256(bundled.read_bytes()).hexdigest()
        assert (found.proof, found.wheel.sha256, found.wheel.url) == ("file", digest, None)
        assert (tmp_path / "cache" / "wheels" / digest / wheel).is_file()
        return
    reason = f"the installed files are not those of {wheel}: "
    if is_bundled:
        fix = "reinstall pip==66.1.1 from an index to have its wheel"
        reason = f"it is the distribution's own build ({bundled}), which no index has; {fix}"
    assert found.reason is not None
    assert found.reason.startswith(reason)


def test_a_wheel_that_changes_between_two_requests_proves_nothing() -> None:
    with pytest.raises(OutsideError) as caught:
        ask(FakeIndex({WHEEL: RECORD}, whole={WHEEL: OTHER}))
    assert caught.value.message == (
        f"six: {WHEEL} changed between two requests: its RECORD matched first, and then not (six.py has a different "
        "hash)"
    )
    assert caught.value.exit_code == 5


def test_every_package_that_failed_is_named_and_nothing_is_recorded() -> None:
    broken = FakeIndex({}, error=OutsideError("the index answered 500", hint="try again later"))
    with pytest.raises(OutsideError) as caught:
        prove([SIX, SIX._replace(name="seven")], broken, known={})
    assert caught.value.message == (
        "2 packages could not be looked up:\n  seven: the index answered 500\n  six: the index answered 500"
    )
    assert caught.value.hint == "try again later"


def test_an_index_that_nobody_answers_for_is_told_at_the_first_package() -> None:
    gone = explain_failure("https://index.example/simple/", requests.ConnectionError(ConnectionRefusedError()), None)

    class Gone(FakeIndex):
        def files(self, name: str) -> list[IndexFile]:
            time.sleep(0.01)
            return super().files(name)

    broken = Gone({}, error=gone)
    with pytest.raises(OutsideError) as caught:
        prove([SIX._replace(name=f"six{number}") for number in range(500)], broken, known={})
    reason = "https://index.example/simple/ cannot be reached: connection refused"
    assert re.fullmatch(rf"six\d+: {re.escape(reason)}", caught.value.message)
    assert caught.value.hint == "check the network, the address, and the proxy settings (HTTPS_PROXY, NO_PROXY)"
    assert len(broken.asked) < 500


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionRefusedError(), True),
        (socket.gaierror(), True),
        (requests.ConnectTimeout(), True),
        (TimeoutError(), False),
        (ConnectionResetError(), False),
    ],
)
def test_what_happens_before_there_is_a_connection_happens_to_every_package(error: Exception, expected: bool) -> None:
    assert explain_failure("https://index.example/", requests.ConnectionError(error), None).unreachable is expected


def test_what_takes_too_long_is_given_up_whatever_it_is_at() -> None:
    hours = threading.Event()

    class Sleeping(FakeIndex):
        def files(self, name: str) -> list[IndexFile]:
            if name == "seven":
                hours.wait(300)
            return super().files(name)

    with pytest.raises(OutsideError) as caught:
        prove([SIX, SIX._replace(name="seven")], Sleeping({WHEEL: RECORD}), known={}, seconds=0.3)
    hours.set()
    # On a busy machine, the other one may be as late.
    assert caught.value.message in ("not finished within 0.3 s: seven", "not finished within 0.3 s: seven, six")
    assert caught.value.hint == "use a faster index, or run it again"


def test_a_garbled_record_of_the_index_is_an_error_of_the_index() -> None:
    with pytest.raises(EnvlockError) as caught:
        ask(FakeIndex({WHEEL: "six.py\n"}))
    assert caught.value.message == f"six: {WHEEL}: its RECORD does not follow the packaging specification"
    assert caught.value.exit_code == 5


def test_a_wheel_from_a_direct_url_is_proven_by_that_url() -> None:
    each = SIX._replace(origin="url", url=f"https://files.example/{WHEEL}")
    index = FakeIndex({WHEEL: RECORD})
    found = ask(index, each)
    assert (found.origin, found.wheel and found.wheel.url) == ("url", f"https://files.example/{WHEEL}")
    assert "six" not in index.asked


def test_progress_is_told_of_every_package() -> None:
    told = []
    packages = [SIX._replace(name=f"six{number}") for number in range(20)]
    prove(packages, None, known={}, on_done=lambda each: told.append((each.name, threading.current_thread().name)))
    assert sorted(name for name, _ in told) == sorted(each.name for each in packages)
    assert {thread for _, thread in told} == {threading.current_thread().name}  # a bar needs no lock


FACTS: dict[str, Any] = {"version": "1.17.0", "wheel_tags": ["py3-none-any"], "installer": "pip", "origin": None}


class Found:
    """A metadata folder with this RECORD."""

    def __init__(self, record: str | None) -> None:
        self.record = record

    def read_text(self, name: str) -> str | None:
        """Return a file of it."""
        return {"RECORD": self.record}.get(name)

    def locate_file(self, path: str) -> Path:
        """Return where a file of it is."""
        return Path("/nowhere", path)


@pytest.mark.parametrize(
    ("changes", "record", "origin", "reason"),
    [
        ({}, INSTALLED_RECORD, "index", None),
        (
            {},
            None,
            "index",
            "it has no RECORD, so it was not installed from a wheel (perhaps by a system package)",
        ),
        ({}, "garbage\n", "index", "its RECORD does not follow the packaging specification"),
        ({"version": None}, INSTALLED_RECORD, "index", "its metadata has no version or no wheel tags"),
        ({"wheel_tags": None}, INSTALLED_RECORD, "index", "its metadata has no version or no wheel tags"),
        ({"installer": "conda"}, INSTALLED_RECORD, "conda", "installed by conda, whose packages are not wheels"),
        (
            {"origin": {"url": "file:", "editable": True}},
            INSTALLED_RECORD,
            "editable",
            "an editable install of a checkout",
        ),
        (
            {"origin": {"url": "https://x.example/six.git", "vcs": "git", "commit": "0a" * 20}},
            INSTALLED_RECORD,
            "vcs",
            f"built from a git checkout at commit {'0a' * 20}",
        ),
        (
            {"origin": {"url": "file:six.whl"}},
            INSTALLED_RECORD,
            "local",
            "installed from a file or a folder on a disk",
        ),
        (
            {"origin": {"url": "https://x.example/six.zip"}},
            INSTALLED_RECORD,
            "url",
            "built from the archive https://x.example/six.zip",
        ),
        ({"origin": {"url": "https://x.example/six.whl"}}, INSTALLED_RECORD, "url", None),
        ({"origin": {"url": None}}, INSTALLED_RECORD, "unknown", "installed from a direct URL that cannot be recorded"),
    ],
)
def test_where_it_came_from_says_whether_an_index_is_asked(
    changes: dict[str, Any], record: str | None, origin: str, reason: str | None
) -> None:
    found = describe_installed("six", {**FACTS, **changes}, Found(record))  # type: ignore[arg-type]
    assert (found.origin, found.reason) == (origin, reason)
    if record == INSTALLED_RECORD:
        assert found.files == COMMON


def test_a_package_without_a_metadata_folder_is_not_proven() -> None:
    assert describe_installed("six", FACTS, None).files is None


@dataclass
class Local:
    """This machine, which has one wheel of everything."""

    path: Path
    build: bool = True

    def wheel(self, name: str, source: Source | None, version: str | None = None) -> Made:
        """Return the wheel."""
        return Made(self.path)

    def is_current(self, source: Source | None, built: PackageIdentity) -> bool:
        """Return that its sources may have changed."""
        return False


@pytest.mark.parametrize("kind", ["wheel", "archive"])
def test_a_package_without_record_cannot_be_compared_with_a_wheel_of_this_machine(
    kind: Literal["wheel", "archive"], tmp_path: Path
) -> None:
    local = Local(make_wheel(tmp_path / HASH, "six", "1.17.0"))
    installed = SIX._replace(files=None, origin="local", source=Source(kind, str(local.path)))
    found = ask(None, installed, here=local)
    assert (found.proof, found.wheel) == (None, None)
    assert found.reason == (
        "it has no RECORD, so it was not installed from a wheel (perhaps by a system package); without a RECORD its "
        "files cannot be compared with those of six-1.17.0-py3-none-any.whl: install it again with pip"
    )
