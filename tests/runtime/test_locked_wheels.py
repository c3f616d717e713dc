"""When the origin of an installed package counts as the locked one: only where it has the files of the locked wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envlock.runtime.collectors import Snapshot
from envlock.runtime.distributions import find_distributions
from envlock.runtime.files.record_rows import get_common_content, hash_content, parse_rows
from envlock.runtime.host import Host
from envlock.runtime.judgement import judge
from envlock.runtime.loaded.owners import describe_content
from envlock.runtime.locked_wheels import complete_packages, restore_locked_origins
from envlock.runtime.report import ERROR
from tests.locks import document
from tests.machines import distribution
from tests.packages.identified import doubt, proof, wheel
from tests.packages.installed import Prefix

CHECKOUT = {"url": "https://git.example.org/mine.git", "vcs": "git", "commit": "c" * 40}
OTHER = {**CHECKOUT, "commit": "d" * 40}
NAMES = ("first", "last", "mine")


class World:
    """An environment of three packages, and a lockfile that has them from another commit, with their wheels."""

    def __init__(self, folder: Path) -> None:
        self.prefix = Prefix(folder)
        self.asked = 0
        self.records: dict[str, Path] = {}
        self.identities: dict[str, Any] = {}
        for name in NAMES:
            self.records[name] = self.prefix.install(name, "1.0", {f"{name}.py": "x = 1\n"})
            content = hash_content(get_common_content(parse_rows(self.records[name].read_text())))
            self.identities[name] = {**proof("1.0", wheel(f"{name}-1.0-py3-none-any.whl")), "content": content}
        self.locked = {name: {"version": "1.0", "origin": CHECKOUT} for name in NAMES}
        self.live: dict[str, Any] = {name: {"version": "1.0", "origin": OTHER} for name in NAMES}

    @property
    def lock(self) -> dict[str, Any]:
        """The lockfile."""
        facts = {"python": {"version": "3.11.7"}, "tensorflow": None, "packages": self.locked}
        return document(facts=facts, unavailable={}, identity={"packages": self.identities})

    @property
    def snapshot(self) -> Snapshot:
        """What the collectors find."""
        return Snapshot({"python": {"version": "3.11.7"}, "tensorflow": None, "packages": self.live}, {}, ["typer"])

    def host(self) -> Host:
        """Return the environment; metadata is read from now on."""
        self.asked += 1
        return Host(environ={}, path=[str(self.prefix.site)])

    def list_refused(self) -> list[str]:
        """Return what keeps the environment from matching."""
        return [each.message for each in judge(self.lock, self.restore()).of(ERROR)]

    def restore(self) -> Snapshot:
        """Return the snapshot in which locked origins count."""
        return restore_locked_origins(self.lock, self.snapshot, self.host)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def refusal(name: str) -> str:
    return f"packages.{name}.origin.commit: locked {CHECKOUT['commit']}, live {OTHER['commit']}"


def test_a_package_with_the_files_of_its_locked_wheel_has_the_locked_origin(world: World) -> None:
    world.live["mine"]["installer"] = "uv"
    restored = world.restore()
    assert restored.facts["packages"] == {
        "first": {"version": "1.0", "origin": CHECKOUT},
        "last": {"version": "1.0", "origin": CHECKOUT},
        "mine": {"version": "1.0", "origin": CHECKOUT, "installer": "uv"},
    }
    assert judge(world.lock, restored).match
    assert world.asked == 1
    assert world.live["mine"]["origin"] == OTHER, "what was found stays as it is"


def test_nothing_else_that_was_found_changes(world: World) -> None:
    found = Snapshot(
        {**world.snapshot.facts, "cpu": None}, {"gpu": {"reason": "it is lost", "code": "lost"}}, ["typer"]
    )
    restored = restore_locked_origins(world.lock, found, world.host)
    assert {**restored.facts, "packages": found.facts["packages"]} == found.facts
    assert (restored.unavailable, restored.tooling) == (found.unavailable, ["typer"])


def test_a_wheel_that_was_built_here_counts_too(world: World) -> None:
    world.identities["mine"].update(built=world.identities["mine"]["content"], content="0" * 64)
    assert world.list_refused() == []


def test_a_locked_package_of_an_index_has_no_origin(world: World) -> None:
    del world.locked["mine"]["origin"]
    assert world.restore().facts["packages"]["mine"] == {"version": "1.0", "origin": None}


def test_the_files_of_a_locked_wheel_need_no_digest_of_a_source(world: World) -> None:
    world.live["mine"]["source"] = "sha256:" + "a" * 64
    assert world.list_refused() == []
    world.identities["mine"]["content"] = "0" * 64
    assert any("packages.mine.source" in each for each in world.list_refused())


@pytest.mark.parametrize("record", [None, "", "mine.py,sha256=AAAA,6\n", "one,two\n"])
def test_a_package_with_other_files_keeps_its_origin(record: str | None, world: World) -> None:
    """A RECORD that is missing, empty, of other files, and none."""
    if record is None:
        world.records["first"].unlink()
    else:
        world.records["first"].write_text(record)
    assert world.list_refused() == [refusal("first")]


def test_a_package_whose_wheel_is_not_locked_keeps_its_origin(world: World) -> None:
    content = world.identities["first"]["content"]
    world.identities["first"] = {**doubt("1.0", "it was installed from a checkout"), "content": content}
    assert world.list_refused() == [refusal("first")]


def test_a_package_that_cannot_be_found_keeps_its_origin(world: World) -> None:
    for file in world.records["first"].parent.iterdir():
        file.unlink()
    world.records["first"].parent.rmdir()
    assert world.list_refused() == [refusal("first")]


def test_packages_that_one_side_does_not_have_are_passed_over(world: World) -> None:
    del world.live["first"], world.locked["last"]
    assert world.list_refused() == ["packages.first: locked 1.0, live absent", "packages.last: locked absent, live 1.0"]


def test_metadata_is_read_only_where_an_origin_differs(world: World) -> None:
    world.live = {name: {"version": "2.0", "origin": CHECKOUT} for name in NAMES}
    found = world.snapshot
    assert restore_locked_origins(world.lock, found, world.host) is found
    without = {**world.lock, "identity": None}
    assert [restore_locked_origins(lock, found, world.host) for lock in (without, document())] == [found, found]
    assert world.asked == 0


@pytest.mark.parametrize("side", ["locked", "live"])
def test_packages_that_one_side_could_not_list_have_no_origin(side: str, world: World) -> None:
    setattr(world, side, None)
    found = world.snapshot
    assert restore_locked_origins(world.lock, found, world.host) is found


def test_what_only_envlock_requires_is_named_if_packages_still_differ(world: World) -> None:
    requires = "Metadata-Version: 2.1\nName: tf-envlock\nRequires-Dist: typer; extra == 'cli'\n"
    distribution(world.prefix.site, "tf_envlock", "1.0", {"METADATA": requires})
    distribution(world.prefix.site, "typer", "0.19")
    found = Snapshot(world.snapshot.facts, {})
    assert complete_packages(world.lock, found, world.host).tooling == ()
    world.live["typer"] = {"version": "0.19"}
    completed = complete_packages(world.lock, found, world.host)
    assert (completed.tooling, completed.facts["packages"]["mine"]["origin"]) == (["typer"], CHECKOUT)


def test_a_wheel_of_a_disk_with_the_locked_files_is_that_of_the_index(world: World) -> None:
    site = world.prefix.site / "mine-1.0.dist-info"
    (site / "INSTALLER").write_text("pip\n", encoding="utf-8")
    (site / "WHEEL").write_text("Tag: py3-none-any\n", encoding="utf-8")
    content = describe_content(find_distributions(world.host())["mine"])
    lock = world.lock
    del lock["identity"]
    lock["facts"].update(packages={"mine": {"version": "1.0"}}, loaded={"packages": {"mine": content}})
    disk = {"url": "file:mine-1.0-py3-none-any.whl", "vcs": None, "commit": None}
    found = {"mine": {"version": "1.0", "origin": disk, "source": "sha256:" + "a" * 64}}
    live = Snapshot({**lock["facts"], "packages": found}, {})
    assert restore_locked_origins(lock, live, world.host).facts["packages"] == {"mine": {"version": "1.0"}}
    back = lock | {"facts": {**lock["facts"], "packages": found}}
    here = Snapshot(lock["facts"], {})
    assert restore_locked_origins(back, here, world.host).facts["packages"] == found
    lock["facts"]["loaded"]["packages"]["mine"] = "1.0 0000"
    assert restore_locked_origins(lock, live, world.host).facts["packages"] == found
