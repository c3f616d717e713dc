"""The user's cache: what another user wrote there neither decides nor runs."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from envlock.image import known_images
from envlock.image.supply import WHEELHOUSE, BuildSources
from envlock.packages import contents, overlay
from envlock.packages.overlay import Wanted, install_overlay, make_overlay_folder
from envlock.packages.wheel_cache import WHEELS, prepare
from envlock.runtime import data_contents, machine_proof
from envlock.runtime.errors import UsageError
from envlock.runtime.loaded import identities
from envlock.runtime.user_cache import find_cache, is_own, make_cache, read_own_file, require_cache

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "envlock"


def become_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: own + 1)


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"HOME": "/home/me"}, "/home/me/.cache/envlock"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": ""}, "/home/me/.cache/envlock"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "relative"}, "/home/me/.cache/envlock"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "/big"}, "/big/envlock"),
        ({"HOME": "relative"}, None),
        ({}, None),
    ],
)
def test_where_the_cache_is(environ: dict[str, str], folder: str | None) -> None:
    assert find_cache(environ) == folder


def test_a_folder_is_made_for_this_user_alone_whatever_the_umask_was(top: Path) -> None:
    top.mkdir()
    top.chmod(0o777)
    made = Path(make_cache(os.environ, "data"))
    assert (made, made.stat().st_mode & 0o777, top.stat().st_mode & 0o777) == (top / "data", 0o700, 0o700)


def test_a_cache_can_be_a_link_of_this_user_to_a_larger_disk(top: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir(mode=0o755)
    top.symlink_to("disk")
    Path(make_cache(os.environ, "data"), "a").write_bytes(b"1")
    assert read_own_file(os.environ, "data", "a") == b"1"


@pytest.mark.parametrize("mode", [0o666, 0o620])
def test_a_file_that_others_can_write_is_not_read(mode: int) -> None:
    file = Path(make_cache(os.environ, "data"), "a")
    file.write_bytes(b"1")
    file.chmod(0o644)
    assert read_own_file(os.environ, "data", "a") == b"1"
    file.chmod(mode)
    assert read_own_file(os.environ, "data", "a") is None


def test_neither_is_a_link_to_one() -> None:
    file = Path(make_cache(os.environ, "data"), "a")
    file.with_name("real").write_bytes(b"1")
    file.symlink_to("real")
    assert read_own_file(os.environ, "data", "a") is None
    assert not is_own(str(file.with_name("none")))


# What another user wrote, and the attempt to have it believed: each is refused or answers nothing.


def plant(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def believe_proof(top: Path) -> Any:
    plant(top, f"{machine_proof.PROOFS}/a", b"")
    return read_own_file(os.environ, machine_proof.PROOFS, "a")


def believe_note(top: Path) -> Any:
    plant(top, f"{data_contents.NOTES}/a", b"")
    return read_own_file(os.environ, data_contents.NOTES, "a")


def believe_imports(top: Path) -> Any:
    plant(top, f"{contents.IMPORTS}/{contents._make_key('record')}", b"numpy\n.\n")
    return contents._read_cached(contents._make_key("record"))


def believe_overlays(top: Path) -> Any:
    plant(top, f"{overlay.OVERLAYS}/h5py-3.11.0/h5py/__init__.py", b"")
    return make_overlay_folder()


def believe_wheel(top: Path) -> Any:
    plant(top, f"{WHEELS}/ab/a.whl", b"")
    return prepare(top, "ab")


def believe_wheelhouse(top: Path) -> Any:
    plant(top, "wheelhouse/a.whl", b"")
    return BuildSources().folder


def believe_image(top: Path) -> Any:
    plant(top, f"{known_images.PART}/a", b"{}")
    return read_own_file(os.environ, known_images.PART, "a")


def believe_loaded(top: Path) -> Any:
    plant(top, f"{identities.PART}/a", b'{"files": {}}')
    return identities.read_note(os.environ, "a") or None


BELIEVERS: dict[str, Callable[[Path], Any]] = {
    machine_proof.PROOFS: believe_proof,
    data_contents.NOTES: believe_note,
    contents.IMPORTS: believe_imports,
    overlay.OVERLAYS: believe_overlays,
    WHEELS: believe_wheel,
    "wheelhouse": believe_wheelhouse,
    known_images.PART: believe_image,
    identities.PART: believe_loaded,
}


@pytest.mark.skipif(WHEELHOUSE.is_dir(), reason="inside an image")
@pytest.mark.parametrize("part", BELIEVERS)
def test_what_another_user_wrote_is_refused_or_unread(part: str, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    become_another_user(monkeypatch)
    with suppress(UsageError):
        assert BELIEVERS[part](top) is None
    with pytest.raises(UsageError) as refused:
        make_cache(os.environ, part)
    assert str(refused.value) == (
        f"cannot use {top} as a cache: it is not this user's folder\nhint: set XDG_CACHE_HOME to a folder of your own"
    )


@pytest.mark.skipif(WHEELHOUSE.is_dir(), reason="inside an image")
@pytest.mark.parametrize("part", BELIEVERS)
def test_what_this_user_wrote_is_believed(part: str, top: Path) -> None:
    assert BELIEVERS[part](top) is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("part", BELIEVERS)
def test_neither_is_what_was_planted_while_the_folder_was_open(part: str, top: Path) -> None:
    """A part that another user has made below this user's own folder, as an odd umask allows."""
    top.mkdir(mode=0o700)
    (top / part).mkdir()
    os.chown(top / part, 65534, 65534)
    with suppress(UsageError):
        assert BELIEVERS[part](top) is None


def test_an_overlay_of_another_user_is_not_run(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlay, "_make_key", lambda *_: "key")
    folder = make_overlay_folder()
    planted = folder / "h5py-3.11.0-key"
    planted.mkdir()
    assert install_overlay(Wanted("h5py", "3.11.0"), folder, None) == planted
    planted.chmod(0o777)
    with pytest.raises(UsageError, match="and it would be run"):
        install_overlay(Wanted("h5py", "3.11.0"), folder, None)


# The code itself: nothing reaches the cache by a way of its own.

OWNER = "envlock/runtime/user_cache.py"
WORDS = ("XDG_CACHE_HOME", ".cache")
ELSEWHERE = {
    "envlock/lock/environments.py": "Poetry's folder: an interpreter there is run only if it is this user's",
}
HELPERS = ("make_cache", "require_cache", "read_own_file", "make_own_folder")
FILES = {file.relative_to(ROOT).as_posix(): file for file in sorted((ROOT / "envlock").rglob("*.py"))}


def list_texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_only_the_helper_knows_where_the_cache_is() -> None:
    found = set()
    for name, file in FILES.items():
        if name == OWNER or name in ELSEWHERE:
            continue
        for text in list_texts(ast.parse(file.read_bytes())):
            if text in WORDS or text.endswith("/.cache"):
                found.add(name)
    assert found == set()


def list_parts(name: str, tree: ast.AST) -> Iterator[str]:
    """Yield the parts of the cache that a module asks for; a text that is put together by its first one."""
    module = import_module(name.removesuffix(".py").replace("/", "."))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or len(node.args) < 2:
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called not in HELPERS:
            continue
        part = eval(compile(ast.Expression(node.args[1]), name, "eval"), {**vars(module), "below": WHEELS})
        yield part.partition("/")[0]


def test_every_part_of_the_cache_has_its_row_among_what_is_not_believed() -> None:
    parts: set[str] = set()
    for name, file in FILES.items():
        if name != OWNER and "user_cache" in file.read_text(encoding="utf-8"):
            parts.update(list_parts(name, ast.parse(file.read_bytes())))
    assert parts == set(BELIEVERS)


def test_the_folder_without_a_look_at_its_owner_is_asked_for_only_whether_there_is_one() -> None:
    asking = {name for name, file in FILES.items() if "find_cache" in file.read_text(encoding="utf-8")} - {OWNER}
    assert asking == {"envlock/workflows/verify_further.py"}
    with pytest.raises(UsageError, match="it has no cache"):
        require_cache({"HOME": "relative"}, "data")
