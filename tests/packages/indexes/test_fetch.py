"""Which addresses a proven wheel is fetched from, and in which order."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from envlock.lock.models import WheelFile
from envlock.packages.identity import Proven
from envlock.packages.indexes import online as module
from envlock.packages.indexes.online import Online, make_fetch
from envlock.packages.indexes.page import IndexFile
from envlock.runtime.errors import OutsideError
from tests.packages.identified import wheel

NAME = "aa-1.0-py3-none-any.whl"
WHEEL = WheelFile.model_validate(wheel(NAME))


class Indexes:
    """What the indexes offer, and whether they were asked."""

    client = None

    def __init__(self, *offered: IndexFile) -> None:
        self.offered = offered
        self.asked: list[str] = []

    def files(self, name: str) -> list[IndexFile]:
        self.asked.append(name)
        return list(self.offered)


def _offered(url: str, name: str = NAME, sha256: str | None = None) -> IndexFile:
    return IndexFile(name, url, sha256, None, False, None, "https://index.example.org")


@pytest.mark.parametrize(
    ("by_address", "broken", "tried", "asked"),
    [
        (True, [], [WHEEL.url], []),
        (True, [WHEEL.url], [WHEEL.url, "same", "unknown"], ["aa"]),
        (False, [], [WHEEL.url], ["aa"]),
        (False, [WHEEL.url], [WHEEL.url, "same", "unknown"], ["aa"]),
    ],
)
def test_the_locks_address_comes_first_unless_an_index_was_asked_for(
    by_address: bool, broken: list[str], tried: list[str], asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    requested = []

    def download(client: object, url: str, target: Path, **wanted: Any) -> None:
        assert (wanted["sha256"], wanted["size"], target) == (WHEEL.sha256, WHEEL.size, Path("x"))
        requested.append(url)
        if url in broken or (broken and url == "same"):
            raise OutsideError(f"{url} is broken")

    monkeypatch.setattr(module, "download", download)
    indexes = Indexes(
        _offered("other hash", sha256="0" * 64),
        _offered("other file", name="aa-1.0-cp311-none-any.whl", sha256=WHEEL.sha256),
        _offered(str(WHEEL.url), sha256=WHEEL.sha256),
        _offered("same", sha256=WHEEL.sha256),
        _offered("unknown"),
    )
    fetch = make_fetch(cast("Online", indexes), by_address=by_address)
    fetch(Proven("aa", "1.0", WHEEL, None), Path("x"), lambda size: None)
    assert (requested, indexes.asked) == (tried, asked)


def test_the_first_thing_that_went_wrong_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def download(client: object, url: str, target: Path, **wanted: Any) -> None:
        raise OutsideError(f"{url} is broken")

    monkeypatch.setattr(module, "download", download)
    package = Proven("aa", "1.0", WHEEL, None)
    with pytest.raises(OutsideError) as error:
        make_fetch(cast("Online", Indexes(_offered("same"))), by_address=True)(package, Path("x"), lambda size: None)
    assert error.value.message == f"{WHEEL.url} is broken"
    with pytest.raises(OutsideError) as error:
        make_fetch(cast("Online", Indexes()), by_address=False)(package, Path("x"), lambda size: None)
    assert error.value.message == "no index has a file of its name and hash"
