"""Names that are nearly known: what is meant is told, and what is somebody else's is left alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from envlock.data import determinism
from envlock.data.runtime_tables import load_variables
from envlock.diagnosis.variable_checks import SHORTEST, check_spelling, find_nearest, measure_distance
from tests.diagnosis.environments import changed, clean

KNOWN = sorted(
    {row.name for row in load_variables()} | {row.name for row in determinism.load_variable_table().variable}
)
LONG = [name for name in KNOWN if len(name) >= SHORTEST]


def test_what_is_meant() -> None:
    meant = {
        "TF_DETERMINSTIC_OPS": "TF_DETERMINISTIC_OPS",
        "TF_DETERMINISTIC_OP": "TF_DETERMINISTIC_OPS",
        "TF_DETERMINISITC_OPS": "TF_DETERMINISTIC_OPS",
        "tf_deterministic_ops": "TF_DETERMINISTIC_OPS",
        "TF_CUDNN_USE_FRONTEND ": "TF_CUDNN_USE_FRONTEND",
        "PYTHONHASHseed": "PYTHONHASHSEED",
        "PYTHON_HASH_SEED": "PYTHONHASHSEED",
        "KERAS_BACKENDS": "KERAS_BACKEND",
        "OMP_NUM_THREAD": "OMP_NUM_THREADS",
        "PATH": None,
        "TF_GPU_THREAD_COUNT": None,
        "BLIS_NUM_THREADS": None,
        "TF_CPP_MAX_VLOG_LEVEL": None,
        "LD_PRELOADS_OF_MINE": None,
    }
    assert {name: find_nearest(name, set(KNOWN)) for name in meant} == meant


def test_distance() -> None:
    rows = [("", "", 0), ("a", "", 1), ("ab", "ba", 1), ("abc", "abd", 1), ("abc", "acbd", 2), ("kitten", "sitting", 3)]
    assert [(one, other, measure_distance(one, other)) for one, other, _ in rows] == rows
    assert [(one, other, measure_distance(other, one)) for one, other, _ in rows] == rows


@given(name=st.sampled_from(LONG), place=st.integers(2, 40))
def test_a_letter_left_out_is_noticed_unless_it_makes_another_known_name(name: str, place: int) -> None:
    place = min(place, len(name) - 1)
    short = name[:place] + name[place + 1 :]
    found = find_nearest(short, set(KNOWN) - {short})
    assert found is not None
    assert measure_distance(short, found) <= 1


@given(names=st.lists(st.text(min_size=1, max_size=30), max_size=5))
def test_names_from_nowhere_are_no_crash(names: list[str]) -> None:
    environment = changed(clean(), others=names)
    assert {finding.rule for finding in check_spelling(environment)} <= {"variable-misspelt"}


def test_no_known_name_is_taken_for_another() -> None:
    assert list(check_spelling(changed(clean(), others=["NCCL_MAX_NCHANNELS"]))) == []
