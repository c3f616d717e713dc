"""On a real lock, changing any one leaf of `facts` is found, and exactly that path is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from envlock.data.runtime_tables import load_policy_table
from envlock.runtime.policies import Policy
from envlock.runtime.tables import table
from tests.conftest import Command
from tests.exhaustive import exhaustive
from tests.runtime.test_compare import LET_THROUGH

SCRIPT = Path(__file__).with_name("every_leaf.py")


UNHELD = {row.path.split(".")[1] for row in load_policy_table().fact if row.path.split(".")[::2] == ["packages", "**"]}
"""Packages that cannot change bits: installers, development tools, notebook front ends."""


ADDED = {row.path for row in load_policy_table().fact if row.path.startswith("packages.") and row.strict == "superset"}
"""Packages that may be there in addition: the lock can lack them."""
ADDED.discard("packages.pygments")  # rich requires it, and Keras rich: it was there at the capture, too

CAUSES = {row["path"] for row in table("policy") if row.get("effect", "").startswith("named.")}
"""Variables in whose place what they lead to decides, where both sides have looked at that."""

WHERE_LOCKED = ("exact_where_asked", "exact_where_locked")


def is_held_where_locked(path: str) -> bool:
    """Return whether a fact is one that older lockfiles lack: it is held only where the lockfile has it."""
    return path in ("environ.PYTHONHASHSEED", "named") or Policy("strict").tier_rule(path) in WHERE_LOCKED


def expect_of_loaded(kind: str, path: str, loaded: dict[str, Any]) -> tuple[int, list[str], list[str]]:
    """Return what is said of what was loaded: what a lockfile lacks, and parts that did not run here, are not compared."""
    if path == "loaded.added" or kind == "type":
        return 3, [], []  # what is read has a form
    _, _, fact = path.partition(".")
    section, _, name = fact.partition(".")
    if section == "unexplained":
        is_found = kind == "removal"
    else:
        has_parts = section == "standard" and " " in loaded[section].get(name, " ")
        is_found = kind == "value" and section != "imports" and not has_parts
    return (1, [path], []) if is_found else (0, [], [])


@exhaustive
def test_a_change_of_any_leaf_is_found_under_strict(python: Command, lock: dict[str, Any]) -> None:
    tooling = lock.get("project", {}).get("tooling", [])  # what only envlock's own command line requires
    unheld = {*UNHELD, *tooling} - {"*"}

    def is_let_through(path: str) -> bool:
        section, _, rest = path.partition(".")
        is_unheld = section == "packages" and (rest.endswith(".installer") or rest.partition(".")[0] in unheld)
        return path in LET_THROUGH or is_unheld

    done = python(str(SCRIPT), "envlock.lock", "strict", timeout=600)
    assert "" == done.stderr
    results = json.loads(done.stdout)

    def expected(kind: str, path: str) -> tuple[int, list[str], list[str]]:
        if kind == "removal" and is_held_where_locked(path):
            return 0, [], []
        if path.partition(".")[0] == "loaded":
            return expect_of_loaded(kind, path, lock["facts"]["loaded"])
        is_free = is_let_through(path) or (kind == "removal" and path in ADDED) or (kind == "value" and path in CAUSES)
        return (0, [], [path]) if is_free else (1, [path], [])

    wrong = [each for each in results if tuple(each[2:]) != expected(each[0], each[1])]
    assert [] == wrong

    leaves = [path for kind, path, *_ in results if kind == "value"]
    print(f"{len(results)} changes of {len(leaves)} leaves; let through: {sorted(filter(is_let_through, leaves))}")
    assert len(leaves) > 250
    assert {"value", "type", "removal", "addition"} == {kind for kind, *_ in results}


def test_a_section_that_no_envlock_knows_is_refused(cli: Command, lock: dict[str, Any]) -> None:
    lock["facts"]["weather"] = {"rain": True}
    (cli.folder / "envlock.lock").write_text(json.dumps(lock), encoding="utf-8")
    done = cli("verify")
    message = (
        "error: lockfile envlock.lock is not valid: `facts` has an unknown section `weather`\n"
        "hint: restore it from version control, or create it again with `envlock capture`\n"
    )
    assert (3, "") == (done.returncode, done.stdout)
    assert done.stderr.endswith(message)
