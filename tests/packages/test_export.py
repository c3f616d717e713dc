"""The formats: golden files, and that whatever a lock holds, what is written is exactly what it proves."""

from __future__ import annotations

import re
import string
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.pylock import Pylock, PylockValidationError
from packaging.requirements import Requirement

from envlock.lock.models import Lockfile, Project
from envlock.packages import export_formats as module
from envlock.packages.export_formats import FORMATS, Wheelhouse, export
from envlock.packages.identity import list_proven
from tests.golden_files import assert_as_golden
from tests.packages.identified import INDEX, doubt, lock_of, proof, wheel

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
NUMPY = "numpy-1.26.4-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
TORCH = "torch-2.4.0+cpu-cp311-cp311-linux_x86_64.whl"
COMMIT = "c0ffee" + "0" * 34
GIT = "https://git.example.org/tool.git"
BUILT = f"built from a git checkout at commit {COMMIT}"
DIRECT = "https://example.org/direct-1.0-py3-none-any.whl"


def _lock() -> Lockfile:
    """Return a lock with a package of every kind."""
    identities = {
        "absl-py": proof("2.1.0", wheel("absl_py-2.1.0-py3-none-any.whl", index=None)),
        "numpy": proof("1.26.4", wheel(NUMPY)),
        "torch": proof("2.4.0+cpu", wheel(TORCH, index="https://other.example.org/o'brien/simple")),
        "direct": proof("1.0", wheel("direct-1.0-py3-none-any.whl", url=DIRECT, index=None), "url"),
        "given": proof("1.0", wheel("given-1.0-py3-none-any.whl", url=None, index=None), "local"),
        "editable": doubt("0.1", "it is an editable install", "editable"),
        "nvidia-own": doubt(None, "no index has it, only the hashes of its files are known", "unknown"),
        "pip": doubt("24.0", "it is the distribution's own build"),
        "tool": doubt("0.2", BUILT),
        "unpublished": doubt("0.3", BUILT),
    }
    origins = {
        "direct": {"url": DIRECT},
        "given": {"url": "file:given-1.0-py3-none-any.whl"},
        "tool": {"url": GIT, "vcs": "git", "commit": COMMIT},
        "unpublished": {"url": "file:", "vcs": "git", "commit": COMMIT},
    }
    packages = {name: {"version": each["version"], "origin": origins.get(name)} for name, each in identities.items()}
    return lock_of(identities, packages=packages)


def _house(lock: Lockfile) -> Wheelhouse:
    known, _ = list_proven(lock, "x.lock")
    return Wheelhouse("../wheels", {each.wheel.name: each.wheel.size for each in known})


@pytest.mark.parametrize("vendored", [False, True])
@pytest.mark.parametrize(("to", "file"), [("pylock", "pylock{}.toml"), ("requirements", "requirements{}.txt")])
def test_golden_files(to: str, file: str, vendored: bool) -> None:
    lock = _lock()
    written = export(lock, "x.lock", to, _house(lock) if vendored else None)
    assert_as_golden(written.text, GOLDEN / file.format(".vendored" if vendored else ""))


@pytest.mark.parametrize("to", FORMATS)
def test_of_an_empty_environment_nothing_is_exported(to: str) -> None:
    lock = lock_of({})
    empty = lock.model_copy(update={"identity": None, "facts": lock.facts.model_copy(update={"packages": {}})})
    written = export(empty, "x.lock", to)
    assert written.left_out == []
    if to == "pylock":
        assert tomllib.loads(written.text)["packages"] == []


def test_what_is_left_out_is_told_with_its_reason() -> None:
    lock = _lock()
    from_disk = "its wheel is known from a disk, not from a URL (`envlock export --wheelhouse` may have it)"
    never = [
        "editable 0.1: it is an editable install",
        "nvidia-own (version unknown): no index has it, only the hashes of its files are known",
        f"unpublished 0.3: {BUILT}",
    ]
    no_hash = f"tool 0.2: {BUILT}; pip takes no checkout with --require-hashes (`--format pylock` has it)"
    assert [str(each) for each in export(lock, "x", "requirements").left_out] == [*never[:2], no_hash, never[2]]
    assert [str(each) for each in export(lock, "x", "pylock").left_out] == [
        never[0],
        f"given 1.0: {from_disk}",
        *never[1:],
    ]


@pytest.mark.parametrize("to", FORMATS)
def test_what_no_policy_compares_is_not_missed(to: str) -> None:
    lock = _lock()
    assert [str(each) for each in export(lock, "x", to).not_held] == ["pip 24.0: it is the distribution's own build"]
    rules = lock.policy.model_copy(update={"overrides": {"packages.pip.version": "exact"}})
    held = export(lock.model_copy(update={"policy": rules}), "x", to)
    assert ("pip" in {each.name for each in held.left_out}, held.not_held) == (True, [])
    # The project itself is installed from its folder, and `verify` lets it differ.
    own = export(lock.model_copy(update={"project": Project(name="editable")}), "x", to)
    assert next(str(each) for each in own.not_held) == "editable 0.1: it is an editable install"
    assert "editable" not in {each.name for each in own.left_out}


@pytest.mark.parametrize(
    ("origin", "is_public"),
    [
        ({}, True),
        ({"subdirectory": "python/tool"}, True),
        ({"url": "ssh://git.example.org/tool.git"}, True),
        ({"url": "file:"}, False),
        ({"url": "http://git.example.org/tool.git"}, False),
        ({"url": "https://user:s3cret@git.example.org/tool.git"}, False),
        ({"url": "https://git.example.org/tool.git?token=s3cret"}, False),
        ({"url": None}, False),
        ({"commit": None}, False),
        ({"vcs": "hg"}, False),
    ],
)
def test_a_checkout_is_exported_if_anybody_can_get_it(origin: dict[str, Any], is_public: bool) -> None:
    whole = {"url": GIT, "vcs": "git", "commit": COMMIT, **origin}
    lock = lock_of({"tool": doubt("0.2", BUILT)}, packages={"tool": {"version": "0.2", "origin": whole}})
    written = export(lock, "x", "pylock")
    packages = tomllib.loads(written.text)["packages"]
    folder = {key: value for key, value in origin.items() if key == "subdirectory"}
    entry = {"name": "tool", "vcs": {"type": "git", "url": whole["url"], "commit-id": COMMIT, **folder}}
    assert packages == ([entry] if is_public else [])
    assert [each.name for each in written.left_out] == ([] if is_public else ["tool"])
    assert [each.name for each in export(lock, "x", "pylock", Wheelhouse("wheels", {})).left_out] == ["tool"]


@pytest.mark.parametrize("to", FORMATS)
def test_a_wheel_that_is_not_in_the_wheelhouse_is_left_out(to: str) -> None:
    lock = _lock()
    sizes = {**_house(lock).sizes, NUMPY: 999}
    del sizes[TORCH]
    written = export(lock, "x", to, Wheelhouse("wheels", sizes))
    out = [str(each) for each in written.left_out]
    assert [each for each in out if each.startswith(("numpy", "torch"))] == [
        "numpy 1.26.4: its wheel is not in the wheelhouse (`envlock export --wheelhouse` fetches it)",
        "torch 2.4.0+cpu: its wheel is not in the wheelhouse (`envlock export --wheelhouse` fetches it)",
    ]
    assert ("numpy" in _read(to, written.text), "absl-py" in _read(to, written.text)) == (False, True)


def _read(to: str, text: str) -> dict[str, tuple[str | None, str]]:
    """Return name -> (version, sha256) as an installer reads it; a wheel's URL stands for the version it says."""
    if to == "requirements":
        return dict(_requirement(line) for line in text.splitlines() if not line.startswith(("#", "-")))
    assert "\r" not in text
    found = {}
    for package in Pylock.from_dict(tomllib.loads(text)).packages:
        if package.vcs is not None:
            continue
        files = [package.archive] if package.archive else package.wheels
        assert files is not None
        (file,) = files
        assert file is not None
        found[package.name] = (str(package.version), file.hashes["sha256"])
    return {str(name): value for name, value in found.items()}


def _requirement(line: str) -> tuple[str, tuple[str | None, str]]:
    text, option, digest = line.partition(" --hash=sha256:")
    requirement = Requirement(text)
    assert (bool(option), requirement.marker, requirement.extras) == (True, None, set())
    assert re.fullmatch("[0-9a-f]{64}", digest)
    if requirement.url is not None:
        return requirement.name, (None, digest)
    (one,) = requirement.specifier
    assert one.operator == "=="
    return requirement.name, (one.version, digest)


NAMES = st.from_regex(r"[a-z0-9]{1,8}(-[a-z0-9]{1,5})?", fullmatch=True)
VERSIONS = st.one_of(
    st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){0,3}(rc[0-9])?(\+[a-z0-9]{1,6})?", fullmatch=True),
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,8}", fullmatch=True),
    st.none(),
)
REASONS = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=40) | st.sampled_from(
    ["a\xa0zz==1 --hash=sha256:" + "0" * 64, '"""\\', "${HOME}", "# [[packages]] \\"]
)
URLS = (
    st.from_regex(r"https?://[A-Za-z0-9.:\[\]-]{1,8}(/[A-Za-z0-9._~!*'();:&=+,%/@-]{0,30})?", fullmatch=True)
    | st.none()
)
FILES = st.text(string.ascii_letters + string.digits + "_.+!-", max_size=20).map(lambda text: f"a{text}.whl")


@st.composite
def _identities(draw: st.DrawFn) -> dict[str, Any]:
    """Return whatever the models allow, often as it should be."""
    found = {}
    for name in draw(st.lists(NAMES, unique=True, max_size=6)):
        version = draw(VERSIONS)
        proper = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
        file = draw(st.one_of(st.just(proper), st.just(proper), FILES))
        url, index = draw(URLS), draw(URLS)
        known = proof(version, wheel(file, url=url, index=index, size=draw(st.integers(0, 2**40))))
        allowed = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+!-]*\.whl", file)
        found[name] = known if allowed and draw(st.booleans()) else doubt(version, draw(REASONS))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("to", FORMATS)
@given(identities=_identities(), vendored=st.booleans(), origins=st.booleans())
def test_whatever_a_lock_holds_what_is_written_is_what_it_proves(
    to: str, identities: dict[str, Any], vendored: bool, origins: bool
) -> None:
    packages = {
        name: {
            "version": each["version"],
            "origin": {"url": each["wheel"]["url"]} if origins and each["wheel"] else None,
        }
        for name, each in identities.items()
    }
    lock = lock_of(identities, packages=packages)
    written = export(lock, "x", to, _house(lock) if vendored else None)
    assert written == export(lock, "x", to, _house(lock) if vendored else None)
    known, _ = list_proven(lock, "x")
    expected = {each.name: (each.version, each.wheel.sha256) for each in known}
    left_out = {each.name for each in [*written.left_out, *written.not_held]}
    assert left_out.isdisjoint(_read(to, written.text))
    found = {
        name: (version or expected[name][0], digest) for name, (version, digest) in _read(to, written.text).items()
    }
    wanted = {name: value for name, value in expected.items() if name not in left_out}
    assert found == (wanted if to == "requirements" else {name: (_pep440(v), d) for name, (v, d) in wanted.items()})
    assert found.keys() | left_out == identities.keys()


def _pep440(version: str) -> str:
    from packaging.version import Version

    return str(Version(version))


def test_the_locked_platform_is_the_only_one() -> None:
    lock = lock_of({"a": proof("1.0", wheel("a-1.0-py3-none-any.whl"))}, python={"version": "3.13.0rc1"}, system=None)
    document = tomllib.loads(export(lock, "x", "pylock").text)
    assert document["requires-python"] == "==3.13.*"
    assert "environments" not in document
    nothing_known = lock_of({}, python=None)
    document = tomllib.loads(export(nothing_known, "x", "pylock").text)
    assert document == {
        "lock-version": "1.0",
        "environments": ["platform_system == 'Linux' and platform_machine == 'x86_64'"],
        "created-by": "envlock",
        "packages": [],
    }


def test_what_the_specification_refuses_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_make_entry", lambda package, house: {"name": "a", "wheels": []})
    with pytest.raises(PylockValidationError, match="Exactly one of vcs, directory, archive must be set"):
        export(lock_of({"a": proof("1.0", wheel("a-1.0-py3-none-any.whl"))}), "x.lock", "pylock")


def test_an_older_packaging_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "packaging.pylock", None)
    assert INDEX in export(_lock(), "x", "pylock").text
