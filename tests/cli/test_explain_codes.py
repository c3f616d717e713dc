"""`envlock explain CODE`, as a shell sees it, and that every finding with a code can be explained."""

from __future__ import annotations

import json

import pytest

from envlock.data.lint_tables import load_dataset_rules, load_lint_rules
from envlock.diagnosis.doctor_table import load_titles
from envlock.workflows.codes import list_codes
from tests.conftest import WITHOUT, Command

MISSING = "an import fails, or finds another module of that name."
COMMIT = "https://github.com/tensorflow/tensorflow/commit/a4b53af710f1e1dc41279e2de7cf6ec8b092f28b"
RECORD = "https://packaging.python.org/en/latest/specifications/recording-installed-packages/"


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (
            "ENV203",
            [
                "ENV203: a dataset that is shuffled or sampled without a seed",
                "  found by: envlock lint",
                "  why: With no seed, its own or a global one, the elements come in another order in every run.",
                "  fix: Pass seed=..., or call tf.keras.utils.set_random_seed(seed) at the start.",
                f"  source: {COMMIT}",
                "  before:",
                "    import tensorflow as tf",
                "",
                "    data = tf.data.Dataset.range(9).shuffle(9)",
                "  after:",
                "    import tensorflow as tf",
                "",
                "    data = tf.data.Dataset.range(9).shuffle(9, seed=7)",
            ],
        ),
        (
            "file-missing",
            [
                "file-missing: a file that is listed and does not exist, except bytecode, which Python compiles again",
                "  found by: envlock verify --deep",
                f"  why: A file that the package needs is missing: {MISSING}",
                "  fix: Reinstall the package at its version.",
                f"  source: {RECORD}",
            ],
        ),
        (
            "driver-version",
            [
                "driver-version: a driver that is too old for the CUDA runtime",
                "  found by: envlock doctor",
                "  why: An older driver does not run this CUDA (error 35, 803 or 804), so TensorFlow computes on the CPU.",
                "  fix: It depends on what is found: each finding says it.",
                "  source: https://docs.nvidia.com/deploy/cuda-compatibility/",
            ],
        ),
    ],
)
def test_a_code_is_explained_without_a_lockfile(code: str, shown: list[str], envlock: Command) -> None:
    done = envlock("explain", code)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[: len(shown)] == shown
    found = json.loads(envlock("explain", code, "-f", "json").stdout)
    assert f"{found['code']}: {found['title']}" == shown[0]
    assert set(found) == {"code", "command", "title", "why", "fix", "source", "before", "after"}


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
