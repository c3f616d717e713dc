"""Each variable that a lockfile holds: the line that is printed for another value, obeyed, makes the fact as locked."""

from __future__ import annotations

import re
from pathlib import Path

from envlock.runtime.collectors.environment_variables import collect, make_recordable
from envlock.runtime.compare import compare
from envlock.runtime.policies import Policy
from envlock.runtime.report import ERROR
from envlock.runtime.tables import table
from tests.machines import distribution, machine

SET, UNSET = re.compile(r"Set (\w+)=(\S+?)(?:;| before|\.$)"), re.compile(r"Unset (\w+)(?:;| before|\.$)")
TRIED = ("1", "0", "7", "true", "PCI_BUS_ID", "AVX2", "0.5", "x")
SHAPED = {"CUDA_VISIBLE_DEVICES"}
"""Its form is locked, not its value: tests/collectors, and the fact `gpu.visible.count`."""
STRICT = Policy("strict", {})


def list_values(row: dict[str, object]) -> list[str]:
    """Return values of a variable that a lockfile records as they are."""
    words = row.get("words", ())
    assert isinstance(words, (list, tuple))
    found = [value for value in (*words, *TRIED) if make_recordable(value, row) == value and len(value.split()) == 1]
    # A path is recorded as a digest, as it could hold something else.
    return list(dict.fromkeys(found))[:2] or ["/srv/one", "/srv/other"]


def test_the_printed_line_makes_each_variable_as_locked(tmp_path: Path) -> None:
    site = tmp_path / "site"
    for name in {name for row in table("environ") for name in row.get("packages", ())}:
        distribution(site, name.replace("-", "_"), "1.0")

    def look(environ: dict[str, str]) -> tuple[dict[str, object], dict[str, dict[str, str]]]:
        return {"environ": collect(machine(tmp_path / "root", environ=environ, site=site))}, {}

    obeyed, unsaid = set(), set()
    for row in table("environ"):
        name, values = row["name"], list_values(row)
        for locked in (*values, None):
            for live in (*values, None):
                if live == locked or row.get("strict") == "ignore":
                    continue
                lock = look({} if locked is None else {name: locked})
                environ = {} if live is None else {name: live}
                told = [each for each in compare(lock, look(environ), STRICT) if each.severity == ERROR]
                if not told:
                    continue  # what counts alike is the same
                (finding,) = told
                if set_ := SET.match(finding.fix):
                    environ[set_[1]] = set_[2]
                elif unset := UNSET.match(finding.fix):
                    del environ[unset[1]]
                else:
                    assert str(finding.expected).startswith("sha256:"), finding.fix
                    unsaid.add(name)
                    continue
                left = [each for each in compare(lock, look(environ), STRICT) if each.severity == ERROR]
                assert left == [], (name, locked, live, finding.fix)
                obeyed.add(name)
    compared = {row["name"] for row in table("environ") if row["name"] not in SHAPED}
    assert compared - obeyed == set()
    # To unset what was unset is always said; the value of a digest cannot be.
    assert unsaid <= obeyed
