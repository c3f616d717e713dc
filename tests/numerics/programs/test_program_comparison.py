"""Parts of a program from what the guest noted, and what differs from those of a lockfile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from envlock.lock.fingerprints import ProgramPart, parse_programs
from envlock.numerics.programs.parts import Observed, read_observed
from envlock.numerics.programs.program_comparison import (
    Compared,
    compare_code,
    compare_switches,
    compare_target,
    find_other_version,
)
from envlock.runtime.report import ERROR, UNKNOWN

HLO = "HloModule m, is_scheduled=true\n\nENTRY %main (x: f32[]) -> f32[] {\n  ROOT %x = f32[] parameter(0)\n}\n"


def definition(kind: str = "Exp", *, compiled: bool = False) -> dict[str, Any]:
    """Return the body of a function of one node, as the guest writes it."""
    node = {"name": "y", "op": kind, "inputs": ["x"], "device": "", "attributes": {"T": "1"}, "calls": {}, "size": 0}
    return {"inputs": ["x"], "types": ["1"], "nodes": [node], "outputs": ["y:y:0"], "control": [], "compiled": compiled}


def answer(**changes: object) -> dict[str, object]:
    """Return what the guest writes of a program with a graph, a compiled function and eager operations."""
    return {
        "tensorflow": "2.21.0",
        "switches": {"jit": ""},
        "files": ["/p/train.py"],
        "functions": [
            {"name": "train", "graph": "f_1", "modules": [], "captures": ["resource"]},
            {"name": "step", "graph": "g_2", "modules": ["m.txt"], "captures": []},
        ],
        "definitions": {"f_1": definition(), "g_2": definition(compiled=True)},
        "eager": {"": ["[1]", "[2]"], "train": ["[3]"]},
        "cut": False,
        **changes,
    }


def observe(**changes: object) -> Observed:
    """Return what was seen of such a program."""
    return read_observed(answer(**changes), {"m.txt": HLO})


def test_parts_have_their_kind_and_size() -> None:
    found = observe()
    sizes = {name: (part.kind, part.operations) for name, part in found.parts.items()}
    assert sizes == {
        "train": ("graph", 1),
        "step": ("xla", 1),
        "eager": ("eager", 2),
        "train-eager": ("eager", 1),
    }
    assert (found.tensorflow, found.files, found.failed) == ("2.21.0", ("/p/train.py",), {})


def test_names_of_functions_change_nothing_and_what_they_compute_does() -> None:
    functions = answer()["functions"]
    assert isinstance(functions, list)
    renamed = [{**functions[0], "graph": "f_9"}, functions[1]]
    bodies = {"f_9": definition(), "g_2": definition(compiled=True)}
    assert observe(functions=renamed, definitions=bodies).parts == observe().parts
    other = observe(definitions={"f_1": definition("Tanh"), "g_2": definition(compiled=True)}).parts
    assert other["train"].digest != observe().parts["train"].digest
    assert other["step"] == observe().parts["step"]
    captured = [{**functions[0], "captures": ["float32[] 1"]}, functions[1]]
    assert observe(functions=captured).parts["train"].digest != observe().parts["train"].digest


@pytest.mark.parametrize(
    ("functions", "reason"),
    [
        ([{"name": "train", "failed": "ValueError: x"}], "ValueError: x"),
        ([{"name": "train", "graph": "gone", "modules": []}], "TensorFlow does not show its graph"),
        (
            [{"name": "train", "graph": "g_2", "modules": []}],
            "XLA compiled it, and showed no module: is XLA_FLAGS set by the program?",
        ),
    ],
)
def test_what_was_not_seen_has_no_fingerprint(functions: list[object], reason: str) -> None:
    found = observe(functions=functions)
    assert found.failed == {"train": reason}
    assert "train" not in found.parts


def test_an_answer_of_another_shape_is_nothing() -> None:
    found = read_observed({"functions": "x", "definitions": [], "eager": None, "files": 3}, {})
    assert (found.parts, found.files) == ({}, ())
    odd = {"name": "y", "size": "big"}
    body = {**definition(), "nodes": [odd, None], "inputs": None}
    assert "train" in observe(definitions={"f_1": body, "g_2": definition(compiled=True)}).parts


def locked(found: Observed) -> dict[str, ProgramPart]:
    """Return parts as a lockfile has them."""
    return {
        name: ProgramPart(kind=part.kind, digest=part.digest, operations=part.operations)  # type: ignore[arg-type]
        for name, part in found.parts.items()
    }


def compare(live: Observed) -> Compared:
    """Return what differs from the usual program."""
    compared = Compared()
    compare_target(compared, "train.py:step", locked(observe()), live)
    return compared


def test_equal_programs_are_counted() -> None:
    compared = compare(observe())
    assert compared.findings == []
    assert compared.notes == ["program: 4 parts as locked; it has no kernels, initial weights, data or host callbacks"]
    assert Compared().notes == []


def test_another_program_is_an_error_and_says_what_runs() -> None:
    other = observe(definitions={"f_1": definition("Tanh"), "g_2": definition(compiled=True)})
    (finding,) = compare(other).findings
    assert (finding.severity, finding.rule) == (ERROR, "program")
    assert str(finding.where) == "program.train.py:step.train"
    assert finding.message == (
        "train.py:step: train runs otherwise: locked graph, 1 operation; live graph, 1 operation"
    )


def test_parts_that_one_side_has_are_errors_unless_they_were_not_seen() -> None:
    less = observe(eager={"": ["[1]", "[2]"]})
    (finding,) = compare(less).findings
    assert (finding.severity, finding.message) == (
        ERROR,
        "train.py:step: train-eager does not run; it did when it was locked",
    )
    more = observe(eager={"": ["[1]", "[2]"], "train": ["[3]"], "predict": ["[4]"]})
    (finding,) = compare(more).findings
    assert (finding.severity, finding.expected) == (ERROR, None)
    (finding,) = compare(replace(less, is_cut=True)).findings
    assert (finding.severity, finding.message) == (
        UNKNOWN,
        "train.py:step: train-eager was not seen: the time was up before it ran",
    )
    functions = [{"name": "train", "failed": "x"}, answer()["functions"][1]]  # type: ignore[index]
    (finding,) = compare(observe(functions=functions)).findings
    assert (finding.severity, finding.message) == (UNKNOWN, "train.py:step: train was not seen: x")


def test_another_version_and_other_code_do_not_compare() -> None:
    assert find_other_version("2.21.0", "2.21.0") is None
    other = find_other_version("2.20.0", "2.21.0")
    assert other is not None
    assert other.severity == UNKNOWN
    assert compare_code("t.py:f", {"t.py": "a"}, {"t.py": "a"}) is None
    changed = compare_code("t.py:f", {"t.py": "a", "gone.py": "b"}, {"t.py": "c"})
    assert changed is not None
    assert changed.severity == UNKNOWN
    assert changed.message == "t.py:f: not compared: the code has changed: gone.py, t.py"


def test_switches_that_rewrite_graphs_are_compared() -> None:
    assert list(compare_switches({"jit": ""}, {"jit": ""})) == []
    (one, two) = compare_switches({"jit": "", "a": "True"}, {"jit": "2"})
    assert (one.message, one.severity) == ("a: locked True, live unset", ERROR)
    assert two.message == "jit: locked unset, live 2"


def test_the_format_refuses_what_it_has_no_room_for() -> None:
    digest = "0" * 64
    parts = {"train": {"kind": "graph", "digest": digest, "operations": 3}}
    section: dict[str, object] = {
        "tensorflow": "2.21.0",
        "switches": {},
        "targets": {"train.py:step": {"code": {"train.py": digest}, "parts": parts}},
    }
    assert parse_programs(section).targets["train.py:step"].parts["train"].operations == 3
    with pytest.raises(ValueError, match=r"targets.*odd name"):
        parse_programs({**section, "targets": {"odd name": {}}})
