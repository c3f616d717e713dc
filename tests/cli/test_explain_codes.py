"""`envlock explain CODE`, as a shell sees it, and that every finding with a code can be explained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envlock.data.lint_tables import load_dataset_rules, load_lint_rules
from envlock.diagnosis.codes import list_codes
from envlock.diagnosis.doctor_table import load_titles
from tests.conftest import WITHOUT, Command
from tests.golden_files import assert_as_golden

CODES = ("ENV203", "file-missing", "driver-version")
GOLDEN = Path(__file__).parents[1] / "golden" / "explained-codes.txt"


def test_a_code_is_explained_without_a_lockfile(envlock: Command) -> None:
    texts = []
    for code in CODES:
        done = envlock("explain", code)
        assert (done.returncode, done.stderr) == (0, "")
        texts.append(done.stdout)
        found = json.loads(envlock("explain", code, "-f", "json").stdout)
        assert f"{found['code']}: {found['title']}" == done.stdout.splitlines()[0]
        assert set(found) == {"code", "command", "title", "why", "fix", "source", "before", "after"}
    assert_as_golden("\n".join(texts), GOLDEN)


def test_no_rule_is_without_a_code() -> None:
    assert {*load_titles(), *load_lint_rules(), *load_dataset_rules()} < set(list_codes())
    assert all(each.title and each.why and each.fix and each.source for each in list_codes().values())


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ENV999", "see the policy reference for facts, and the linter reference for codes"),
        ("env203", "did you mean `ENV203`?"),
        ("file-modifed", "did you mean `file-modified`?"),
    ],
)
def test_what_is_neither_a_fact_nor_a_code(name: str, hint: str, envlock: Command) -> None:
    """It is refused before an environment is looked for: the shell of these tests has none."""
    done = envlock("explain", name, environ={WITHOUT[0]: ""})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: `{name}` is neither a fact nor the code of a finding\nhint: {hint}\n"


def test_a_misspelt_fact_is_no_code(envlock: Command) -> None:
    done = envlock("explain", "pakages")
    assert done.stderr.startswith("error: no fact matches `pakages`\nhint: did you mean `packages")
