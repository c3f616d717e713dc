"""Which index file an installed distribution came from: the proof, and every reason why there is none."""

from __future__ import annotations

import hashlib
import sys
import tempfile
import threading
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from envlock.lock.models import Lockfile, PackageIdentity, WheelFile
from envlock.packages.index import NoWheelError, Offer, Wanted
from envlock.packages.installed_distributions import InstalledPackage, describe_installed
from envlock.packages.local_wheels import Made, Workshop
from envlock.packages.proofs import NO_WHEEL, describe_proofs
from envlock.packages.prover import prove
from envlock.packages.sources import Source
from envlock.runtime.errors import EnvlockError, OutsideError
from envlock.runtime.files.record_rows import get_common_content, hash_content, parse_rows
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
    """An index in memory: file name -> its RECORD; the first one is what pip would install today."""

    records: dict[str, str]
    error: OutsideError | None = None
    yanked: bool = False
    asked: list[str] = field(default_factory=list)

    def find(self, wanted: Sequence[Wanted], seconds: float = 0) -> dict[str, Offer | OutsideError]:
        self.asked += [each.url or each.name for each in wanted]
        return {each.name: self._offer(each, 0) for each in wanted}

    def find_tagged(self, wanted: Wanted, tags: Sequence[str]) -> Offer | OutsideError:
        self.asked.append(f"{wanted.name} for {' '.join(tags)}")
        return self._offer(wanted, -1)

    def _offer(self, wanted: Wanted, number: int) -> Offer | OutsideError:
        if self.error is not None:
            return self.error
        names = [name for name in self.records if name.startswith(wanted.name.replace("-", "_"))]
        if not names:
            return NoWheelError(NO_WHEEL)
        name = names[number]
        path = Path(tempfile.mkdtemp(), name)
        if self.records[name]:
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("six-1.17.0.dist-info/RECORD", self.records[name])
        else:
            path.write_bytes(b"damaged")
        url = f"https://user:secret@files.example/{name}?token=secret"
        return Offer(name, HASH, 9, path, url, HOME, self.yanked)


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


def test_a_wheel_with_the_installed_files_is_proven() -> None:
    index = FakeIndex({WHEEL: RECORD})
    assert ask(index) == proven()
    assert index.asked == ["six"]


@pytest.mark.parametrize("yanked", [True, False])
def test_a_yanked_release_is_worth_a_word(yanked: bool) -> None:
    said: list[str] = []
    assert ask(FakeIndex({WHEEL: RECORD}, yanked=yanked), say=said.append) == proven()
    words = "warning: six 1.17.0 is yanked: its index says that its maintainers ask not to use it"
    assert said == ([words] if yanked else [])


def test_a_damaged_wheel_leaves_one_package_unproven() -> None:
    other = SIX._replace(name="seven")
    index = FakeIndex({WHEEL: "", WHEEL.replace("six", "seven", 1): RECORD})
    found = prove([SIX, other], index, known={}).packages
    assert found["six"].wheel is None
    assert str(found["six"].reason).startswith(f"{WHEEL} is not a valid wheel: ")
    assert found["seven"].wheel is not None


def test_of_two_builds_the_one_with_the_same_files_is_taken() -> None:
    rebuilt = "six-1.17.0-1-py2.py3-none-any.whl"
    index = FakeIndex({WHEEL: OTHER, rebuilt: RECORD})
    assert ask(index) == proven(name=rebuilt)
    assert index.asked == ["six", "six for py2-none-any py3-none-any"]


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ({}, "no index has its wheel for this Python and machine; only its file hashes are known"),
        ({WHEEL: OTHER}, f"the installed files are not those of {WHEEL}: six.py has a different hash"),
    ],
)
def test_what_cannot_be_proven_says_why(records: dict[str, str], reason: str) -> None:
    found = ask(FakeIndex(records))
    assert (found.wheel, found.proof, found.reason, found.content) == (None, None, reason, CONTENT)


@pytest.mark.parametrize(
    ("records", "hint"),
    [
        (
            {},
            ["hint: `envlock capture --hashes --build` builds the wheels of checkouts, folders and source archives"],
        ),
        ({WHEEL: OTHER}, []),
    ],
)
def test_how_a_wheel_is_built_is_said_where_it_can_be(records: dict[str, str], hint: list[str]) -> None:
    identity = {"packages": {"six": ask(FakeIndex(records)).model_dump()}}
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


def test_every_package_that_failed_is_named_and_nothing_is_recorded() -> None:
    broken = FakeIndex({}, error=OutsideError("the index answered 500", hint="try again later"))
    with pytest.raises(OutsideError) as caught:
        prove([SIX, SIX._replace(name="seven")], broken, known={})
    assert caught.value.message == (
        "2 packages could not be looked up:\n  seven: the index answered 500\n  six: the index answered 500"
    )
    assert caught.value.hint == "try again later"


def test_what_takes_too_long_is_given_up_whatever_it_is_at() -> None:
    hours = threading.Event()

    class Sleeping(FakeIndex):
        def find_tagged(self, wanted: Wanted, tags: Sequence[str]) -> Offer | OutsideError:
            hours.wait(300)
            return super().find_tagged(wanted, tags)

    with pytest.raises(OutsideError) as caught:
        prove([SIX, SIX._replace(name="seven")], Sleeping({WHEEL: RECORD, "seven.whl": OTHER}), known={}, seconds=0.3)
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
    assert index.asked == [f"https://files.example/{WHEEL}"]


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
