"""Whether a result depends on its batch: what measurements of all kinds make of the verdict and the remedies."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.numerics.invariance import (
    InvarianceEvidence,
    Layer,
    ModeBits,
    find_padding,
    find_remedies,
    judge_invariance,
    read_layer,
    read_modes,
    show_classes,
    show_sizes,
)
from envlock.reports import FORMATS, render
from envlock.runtime.report import Report

VERSIONS = {"tensorflow": "2.21.0"}


def measured(mode: str = "graph", classes: str = "abbbb", *, steady: bool = True) -> ModeBits:
    """Return what was measured at the sizes 1, 2, ...: a letter each is its digest; the place counts unless steady."""
    sizes = dict(enumerate(classes, 1))
    last = len(classes)
    moved = sizes[last] if steady else "z"
    places = {last: {0: sizes[last], last - 1: moved}}
    neighbors = {last: {"zeros": sizes[last], "others": sizes[last]}}
    return ModeBits(mode, sizes, places, neighbors)


def judge(
    *modes: ModeBits, switched: tuple[ModeBits, ...] = (), asked: tuple[str, ...] = ()
) -> Report[InvarianceEvidence]:
    return judge_invariance(InvarianceEvidence(VERSIONS, None, modes, switched), asked, "model.keras")


def remedies(report: Report[InvarianceEvidence]) -> list[str]:
    return [remedy.text for remedy in report.evidence.remedies]


def test_equal_bits_everywhere_are_a_yes_that_says_how_much() -> None:
    report = judge(measured(classes="aaaa"), measured("eager", "aaaa"))
    assert (report.exit_code, report.headline) == (
        0,
        "model.keras does not depend on the batch: 4 sizes of batches in 2 modes have the same bits",
    )
    assert report.findings == []


def test_another_size_is_a_no_with_its_layer_and_a_measured_remedy() -> None:
    layer = Layer((1, 2), "dense", "Dense")
    report = judge(replace(measured(), layer=layer))
    assert report.exit_code == 1
    assert report.headline == "model.keras depends on the batch in graph: 5 sizes of batches in 1 mode compared"
    (finding,) = report.findings
    assert finding.message == "graph: 2 classes of bits: {1} {2..5}; first in layer dense (Dense)"
    assert finding.fix.split("\n") == [
        "pad smaller batches to 2 rows: from 2 to 5 the bits are the same",
        "pad every batch to 5 rows: there neither the place nor the other rows change the bits",
    ]


@pytest.mark.parametrize(
    ("classes", "steady", "padding"),
    [
        ("abbb", True, "pad smaller batches to 2 rows: from 2 to 4 the bits are the same"),
        ("abbb", False, None),  # the place in the batch changes the bits
        ("abab", True, None),  # sizes of both classes to the end
        ("abbc", True, None),  # the largest stands alone
        ("bacc", True, "pad smaller batches to 3 rows: from 3 to 4 the bits are the same"),
        ("acbcc", True, "pad smaller batches to 4 rows: from 4 to 5 the bits are the same"),
        ("abcc", True, "pad smaller batches to 3 rows: from 3 to 4 the bits are the same"),
    ],
)
def test_padding_helps_where_it_was_seen_to(classes: str, steady: bool, padding: str | None) -> None:
    assert find_padding(measured(classes=classes, steady=steady)) == padding


def test_sizes_that_were_not_measured_are_not_promised() -> None:
    bits = ModeBits("xla", {1: "a", 33: "b", 64: "b"}, {64: {0: "b", 63: "b"}}, {64: {"zeros": "b"}})
    assert remedies(judge(bits)) == [
        "pad every batch to 64 rows: there neither the place nor the other rows change the bits"
    ]


def test_a_place_or_other_rows_are_a_no_by_themselves() -> None:
    report = judge(measured(classes="aaa", steady=False))
    assert [(finding.rule, finding.message) for finding in report.findings] == [
        ("batch-place", "graph: 2 classes of bits for 2 places in batches of 3")
    ]
    assert report.findings[0].fix == "none was found by measuring: compare results with a tolerance"


def test_what_helps_may_be_a_switch_or_another_mode() -> None:
    steady = measured("graph", "aaa")
    bits = measured("xla", "abc", steady=False)
    report = judge(steady, bits, switched=(measured("xla", "aaa"),))
    assert remedies(report) == [
        "set TF_ENABLE_ONEDNN_OPTS=0: every batch has the same bits",
        "compute without XLA: as a graph, every batch has the same bits",
    ]


def test_nothing_measured_is_no_yes() -> None:
    empty = ModeBits("graph", {}, {}, {})
    assert [judge(*modes).exit_code for modes in ((), (empty,), (replace(empty, sizes={1: "a"}),))] == [4, 4, 4]
    assert judge().headline == "nothing was compared of model.keras"


def test_a_mode_that_varies_by_itself_or_failed_cannot_be_judged() -> None:
    varies = ModeBits("graph", {}, {}, {}, unstable=1)
    fails = ModeBits("xla", {}, {}, {}, failed="no kernel")
    assert judge(varies, measured("eager", "aa")).exit_code == 4
    assert judge(fails, measured("eager", "aa")).exit_code == 0, "it was only tried"
    assert judge(fails, measured("eager", "aa"), asked=("xla",)).exit_code == 4
    assert judge(measured("eager", "aa"), asked=("predict",)).exit_code == 4


def test_modes_with_other_bits_are_said() -> None:
    report = judge(measured("eager", "aa"), measured("graph", "aa"), measured("xla", "bb"))
    assert [finding.message for finding in report.findings] == [
        "in batches of 1 these give different bits: eager=graph, xla"
    ]
    assert report.exit_code == 0


def test_answers_of_the_guest_are_read() -> None:
    answers: list[dict[str, object]] = [
        {"environment": VERSIONS},
        {"mode": "graph", "size": 1, "digest": "a"},
        {"mode": "graph", "size": 2, "digest": "b"},
        {"mode": "graph", "size": 2, "place": 1, "digest": "b"},
        {"mode": "graph", "size": 2, "place": 0, "digest": "c"},
        {"mode": "graph", "size": 2, "neighbors": "zeros", "digest": "b"},
        {"mode": "graph", "size": 2, "neighbors": "others", "digest": "d"},
        {"mode": "graph", "between": [1, 2], "layer": "dense", "kind": "Dense", "number": 1},
        {"mode": "xla", "failed": "no kernel"},
        {"mode": "eager", "unstable": 2},
        {"mode": "eager", "size": "many", "digest": "e"},
        {"mode": "eager", "size": 3, "digest": 3},
    ]
    assert read_modes(answers) == (
        ModeBits(
            "graph",
            {1: "a", 2: "b"},
            {2: {1: "b", 0: "c"}},
            {2: {"zeros": "b", "others": "d"}},
            layer=Layer((1, 2), "dense", "Dense"),
        ),
        ModeBits("xla", {}, {}, {}, failed="no kernel"),
        ModeBits("eager", {}, {}, {}, unstable=2),
    )


@given(st.text("ab", min_size=2, max_size=9), st.text("ab", min_size=2, max_size=9))
def test_taking_evidence_away_never_makes_a_yes(one: str, other: str) -> None:
    both = judge(measured("eager", one), measured("graph", other))
    for left in (measured("eager", one), measured("graph", other)):
        cut = replace(left, sizes=dict(list(left.sizes.items())[:1]), places={}, neighbors={})
        alone = judge(cut)
        assert not alone.match
    assert both.match == (len(set(one)) == 1 and len(set(other)) == 1)


def test_a_layer_is_read_with_what_is_known_of_it() -> None:
    answer = {"between": [1, 2], "layer": "dense", "kind": "Dense"}
    assert read_layer(answer) == Layer((1, 2), "dense", "Dense", None)
    reason = {"between": [1, 2], "reason": "a subclass has no graph"}
    assert read_layer(reason) == Layer((1, 2), None, None, "a subclass has no graph")
    others: list[dict[str, object]] = [{}, {"between": "12"}, {"between": [1]}, {"between": [1, 2, 3]}]
    for damaged in others:
        assert read_layer(damaged) is None


def test_what_is_measured_at_another_size_says_nothing_of_this_one() -> None:
    bits = ModeBits("graph", {1: "a", 2: "a"}, {2: {0: "a"}}, {2: {"zeros": "a"}})
    assert bits.is_steady_at(2)
    assert not bits.is_steady_at(1)
    only_rows = replace(bits, places={}, neighbors={2: {"zeros": "a", "others": "b"}})
    assert not only_rows.is_steady_at(2)
    assert not replace(bits, neighbors={2: {"zeros": "b"}}).is_steady_at(2)


def test_the_smallest_size_of_a_padding_has_to_be_steady_too() -> None:
    bits = replace(measured(classes="abbb"), places={2: {0: "b", 1: "z"}, 4: {0: "b", 3: "b"}})
    assert find_padding(bits) is None
    assert find_padding(replace(bits, places={2: {0: "b", 1: "b"}}, neighbors={2: {"zeros": "b"}})) is not None


def test_each_mode_has_its_remedies() -> None:
    modes = (measured("eager", "abb"), measured("graph", "abb"))
    switched = (measured("eager", "aaa"), measured("graph", "aaa"))
    for onednn, other in (("0", "1"), ("1", "0"), (None, "0")):
        remedies = find_remedies(InvarianceEvidence(VERSIONS, onednn, modes, switched))
        texts = [remedy.text for remedy in remedies if remedy.mode == "eager"]
        assert f"set TF_ENABLE_ONEDNN_OPTS={other}: every batch has the same bits" in texts
        assert {remedy.mode for remedy in remedies} == {"eager", "graph"}


def test_two_modes_and_seven_classes_for_people() -> None:
    report = judge(measured("eager", "ab"), measured("graph", "ab"))
    assert report.headline == "model.keras depends on the batch in eager, graph: 2 sizes of batches in 2 modes compared"
    assert report.subject == "model.keras"
    texts = [str(number) for number in range(1, 9)]
    assert show_classes(texts[:6]) == "{1} {2} {3} {4} {5} {6}"
    assert show_classes(texts) == "{1} {2} {3} {4} {5} {6} and 2 more"


def test_sizes_for_people() -> None:
    assert [show_sizes(sizes) for sizes in ([1], [1, 2], [1, 2, 3], [1, 3, 4, 5, 9])] == [
        "1",
        "1, 2",
        "1..3",
        "1, 3..5, 9",
    ]


def test_every_format_has_the_finding() -> None:
    report = judge(measured(), measured("xla", "abc"), switched=(measured("xla", "aaa"),))
    for form in FORMATS:
        assert "classes of bits" in render(report, form), form


def mixed(mode: str) -> ModeBits:
    """Return a mode in which the values of other rows change the result."""
    layer = Layer((0, 0), "norm", "BatchNormalization")
    neighbors = {3: {"zeros": "a", "copies": "b", "others": "c"}}
    far = {"sizes": (0.25, 0.5), "neighbors": (0.125, 0.5)}
    return replace(measured(mode, "abc"), neighbors=neighbors, mixing=layer, distances=far)


def test_what_depends_on_values_of_other_rows_is_no_rounding() -> None:
    report = judge(mixed("graph"))
    (size, neighbors) = report.findings
    assert size.message == "graph: 3 classes of bits: {1} {2} {3}; largest difference 0.25, of values up to 0.5"
    assert neighbors.message == (
        "graph: 3 classes of bits for 3 other rows in batches of 3; largest difference 0.12, of values up to 0.5; "
        "first in layer norm (BatchNormalization)"
    )
    assert {each.why.partition(":")[0] for each in report.findings} == {"no rounding"}
    assert not any("tolerance" in each.fix or "pad" in each.fix for each in report.findings)


def test_predict_is_a_remedy_only_where_it_was_measured() -> None:
    helps = "answer with `predict`, or call the model with `training=False`: then every batch has the same bits"
    assert remedies(judge(mixed("graph"), measured("predict", "aaa"))) == [helps]
    assert remedies(judge(mixed("graph"), mixed("predict"))) == []
    assert helps not in remedies(judge(measured("graph", "abb"), measured("predict", "aaa")))


def test_distances_of_the_guest_are_read() -> None:
    answers: list[dict[str, object]] = [
        {"mode": "graph", "size": 1, "digest": "a"},
        {"mode": "graph", "size": 2, "digest": "b", "far": 0.5, "largest": 1.0},
        {"mode": "graph", "size": 3, "digest": "b", "far": 0.25, "largest": 1.0},
        {"mode": "graph", "size": 3, "place": 1, "digest": "b", "far": 0.125, "largest": 1.0},
        {"mode": "graph", "mixing": True, "layer": "norm", "kind": "BatchNormalization", "number": 2},
    ]
    (bits,) = read_modes(answers)
    assert bits.distances == {"sizes": (0.5, 1.0), "places": (0.125, 1.0)}
    assert bits.mixing == Layer((0, 0), "norm", "BatchNormalization")
    assert bits.layer is None


def test_the_seed_stands_in_the_headline() -> None:
    evidence = InvarianceEvidence(VERSIONS, None, (measured("eager", "aa"),))
    report = judge_invariance(evidence, (), "train.py:build", 0)
    assert report.headline.endswith(" have the same bits, with all seeds set to 0 by envlock")
