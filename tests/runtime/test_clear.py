"""What a report shows in clear of a variable that a lockfile holds as a digest, and what it never shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.runtime.clear_values import WORDS, in_clear, show_in_clear
from envlock.runtime.collectors.environment_variables import hash_value, make_recordable
from envlock.runtime.report import ERROR, Finding
from envlock.runtime.tables import table

SECRET = "TOPSECRETMARKER"


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("TF_DETERMINISTIC_OPS", "yes", "yes"),
        ("TF_DETERMINISTIC_OPS", "-1.5", "-1.5"),
        ("TF_ENABLE_ONEDNN_OPTS", "off ", "'off '"),
        ("LD_LIBRARY_PATH", "/opt/cuda/lib64::/usr/lib", "/opt/cuda/lib64::/usr/lib"),
        ("XLA_FLAGS", "--xla_gpu_autotune_level=fast", "--xla_gpu_autotune_level=fast"),
    ],
)
def test_what_cannot_be_a_secret_is_shown(name: str, value: str, shown: str) -> None:
    assert list(in_clear(name, {name: value}).values()) == [shown]


def test_of_flags_only_the_secret_stays_a_digest() -> None:
    (shown,) = in_clear(
        "XLA_FLAGS", {"XLA_FLAGS": f"--xla_gpu_autotune_level=fast --xla_dump_to=/home/{SECRET}"}
    ).values()
    assert shown == f"--xla_gpu_autotune_level=fast --xla_dump_to={hash_value(f'/home/{SECRET}')}"


@pytest.mark.parametrize("name", ["TF_DETERMINISTIC_OPS", "LD_LIBRARY_PATH", "XLA_FLAGS", "CUDA_VISIBLE_DEVICES"])
@given(
    before=st.sampled_from(
        ["", "/usr/lib:", "yes ", "--xla_dump_hlo_as_text=fast --xla_dump_to=", "/opt/../home/", "GPU-", "1,"]
    )
)
def test_a_secret_is_never_shown(name: str, before: str) -> None:
    assert all(SECRET not in shown for shown in in_clear(name, {name: before + SECRET}).values())


def test_a_digest_is_replaced_only_by_the_value_that_gives_it() -> None:
    """The value in force may be the one at the start of the process, or that of another environment."""
    name = "TF_DETERMINISTIC_OPS"
    (row,) = [each for each in table("environ") if each["name"] == name]
    said = f"environ.{name}: locked unset, live {make_recordable('yes', row)}"
    for value, shown in (("yes", f"environ.{name}: locked unset, live yes"), ("no", said)):
        finding = Finding(
            "exact",
            ERROR,
            f"environ.{name}",
            message=said,
            why="It may.",
            fix="Do it.",
            source="x",
            actual=make_recordable("yes", row),
        )
        show_in_clear([finding], {name: value})
        assert (finding.message, finding.actual) == (shown, make_recordable("yes", row))


def test_words_are_lower_case() -> None:
    """They are compared with a value in lower case."""
    assert [word for word in WORDS if word != word.lower()] == []
