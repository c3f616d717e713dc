"""Comparison: nothing slips through, nothing is made up, and what could not be told is never called different."""

from __future__ import annotations

from itertools import chain, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.runtime.collectors import Snapshot, take_snapshot
from envlock.runtime.compare import ASK_AGAIN, LOCK_AGAIN, STEADY, TAKE_AWAY, compare
from envlock.runtime.facts import Unavailable, is_same, iter_leaves
from envlock.runtime.judgement import judge
from envlock.runtime.policies import Policy, find_effect, is_protected, names
from envlock.runtime.report import ABSENT, ERROR, INFO, UNKNOWN, Finding, Report
from tests.machines import complete
from tests.trees import LEAVES, TREES, put

STRICT = Policy("strict")
REASON = {"reason": "no way", "code": "denied"}


def differences(old: dict[str, Any], new: dict[str, Any], policy: Policy = STRICT) -> list[tuple[str, Any, Any]]:
    return sorted((f.where.fact, f.expected, f.actual) for f in compare((old, {}), (new, {}), policy))


DIFFERENCES: list[tuple[dict[str, Any], dict[str, Any], list[tuple[str, Any, Any]]]] = [
    ({}, {}, []),
    ({"a": 1}, {"a": 2}, [("a", 1, 2)]),
    ({"a": 1}, {"a": 1.0}, [("a", 1, 1.0)]),
    ({"a": None}, {}, [("a", None, ABSENT)]),
    ({}, {"a": None}, [("a", ABSENT, None)]),
    ({"a": None}, {"a": {}}, [("a", None, {})]),
    ({"a": {"b": 1}}, {"a": {"c": 1}}, [("a.b", 1, ABSENT), ("a.c", ABSENT, 1)]),
    ({"a": {"b": 1}}, {"a": [1]}, [("a", {"b": 1}, [1])]),
    ({"a": {"b": {"c": 1}}}, {}, [("a", {"b": {"c": 1}}, ABSENT)]),
    ({"a": [1, 2]}, {"a": [2, 1]}, [("a", [1, 2], [2, 1])]),
]


def test_differences() -> None:
    assert [(old, new, differences(old, new)) for old, new, _ in DIFFERENCES] == DIFFERENCES


SAID: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "cpu.flags: locked [avx], live []": ({"cpu": {"flags": ["avx"]}}, {"cpu": {"flags": []}}),
    "numpy.version: locked 2, live absent": ({"numpy": {"version": "2"}}, {"numpy": {}}),
    "numpy: locked none, live 2": ({"numpy": None}, {"numpy": {"version": "2"}}),
    "environ.A: locked unset, live 0": ({"environ": {"A": None}}, {"environ": {"A": "0"}}),
    'environ.A: locked "", live unset': ({"environ": {"A": ""}}, {"environ": {"A": None}}),
    "environ.A: locked unset, live absent": ({"environ": {"A": None}}, {"environ": {}}),
}


def test_what_is_said_of_a_difference() -> None:
    said = [found.message for old, new in SAID.values() for found in compare((old, {}), (new, {}), STRICT)]
    assert said == list(SAID)


def test_what_is_said_of_what_could_not_be_collected() -> None:
    (found,) = compare(({"keras": None}, {}), ({}, {"keras": REASON}), STRICT)
    assert found.message == "keras: locked none, live unknown (no way)"


def test_the_sides_have_the_names_they_were_given() -> None:
    (found,) = compare(({"cpu": {"flags": "a"}}, {}), ({"cpu": {"flags": "b"}}, {}), STRICT, ("a.lock", "b\x1b.lock"))
    assert found.message == "cpu.flags: a.lock a, b\\x1b.lock b"


def test_what_is_unavailable_deep_in_a_section_is_said_once() -> None:
    locked: Any = ({"cuda": {"cudnn": {"version": "9.1.0"}}}, {})
    live: Any = ({"cuda": {"cudnn": {}}}, {"cuda.cudnn.version": REASON})
    (found,) = compare(locked, live, STRICT)
    assert found.message == "cuda.cudnn.version: locked 9.1.0, live unknown (no way)"


NEVER_TOLD = [
    *("blocked-by-system", "nvml-13", "wsl2-unsupported"),
    *("no-version", "replaced", "several-owners", "unknown-soname"),
]


@pytest.mark.parametrize("code", NEVER_TOLD)
def test_what_neither_side_can_ever_tell_is_no_finding(code: str) -> None:
    one, other = ({"cpu.flags": {"reason": reason, "code": code}} for reason in ("no way", "not here"))
    assert compare(({"cpu": {}}, one), ({"cpu": {}}, other), STRICT) == []


def test_a_question_that_nobody_can_answer_hides_no_other() -> None:
    steady = {"cpu.flags": {**REASON, "code": STEADY[0]}}
    locked, live = ({**steady, "cpu.model": {"reason": reason, "code": "denied"}} for reason in ("no way", "no file"))
    (found,) = compare(({"cpu": {}}, locked), ({"cpu": {}}, live), STRICT)
    assert found.message == "cpu.model: locked unknown (no way), live unknown (no file)"


def test_what_to_do_about_a_package_that_nobody_locked() -> None:
    """The rows speak of the locked package: to install it is no remedy where there was none."""

    def fixes(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str]]:
        return [(each.severity, each.fix) for each in compare((old, {}), (new, {}), STRICT)]

    one = {"packages": {"h5py": {"version": "3.1", "installer": "uv"}}}
    assert fixes({"packages": {}}, one) == [(ERROR, "Uninstall it.")]
    unowned = {"packages": {"h5py": {"version": "3.1", "installer": None}}}
    assert fixes({"packages": {}}, unowned) == [(ERROR, TAKE_AWAY)]
    assert fixes({"packages": {}}, {"packages": {"pip": {"version": "26.1"}}}) == [(INFO, "Nothing to do.")]
    row = STRICT.row("packages.h5py")["fix"]
    assert "Uninstall" not in row
    assert fixes(one, {"packages": {}}) == [(ERROR, row)]
    assert fixes({"packages": {"h5py": {"installer": "uv"}}}, one) == [
        (ERROR, STRICT.row("packages.h5py.version")["fix"])
    ]
    assert fixes({"numpy": {}}, {"numpy": {"version": "2"}}) == [(ERROR, STRICT.row("numpy.version")["fix"])]


@pytest.mark.parametrize("path", ["cpu.flags", "gpu.devices.0.name"])
def test_what_a_side_could_not_tell_is_found_between_equal_facts(path: str) -> None:
    facts = {"cpu": {"vendor": "x"}, "gpu": {"devices": {"0": {"cores": 1}}}}
    both: list[tuple[dict[str, Any], dict[str, Any]]] = [({path: REASON}, {}), ({}, {path: REASON})]
    for sides in both:
        found = compare((facts, sides[0]), (facts, sides[1]), STRICT)
        assert [(each.severity, each.where.fact) for each in found] == [(UNKNOWN, path)]


def test_how_a_package_is_known_to_matter_is_said_where_it_is_held() -> None:
    held = {"h5py": "imported by train"}
    locked, live = ({"packages": {"h5py": {"version": version}}} for version in "12")
    (error,) = compare((locked, {}), (live, {}), Policy("strict", held=held))
    (allowed,) = compare((locked, {}), (live, {}), Policy("strict", {"packages.h5py.**": "ignore"}, held))
    assert error.message == "packages.h5py.version: locked 1, live 2 (imported by train)"
    assert allowed.message == "packages.h5py.version: locked 1, live 2"


def test_two_facts_of_one_path_are_both_shown() -> None:
    """No capture writes a name with a dot, but a lockfile may hold one."""
    locked, live = {"cpu": {"a": {"b": 1}, "a.b": None}}, {"cpu": {"a": {"b": "x"}, "a.b": []}}
    said = [found.message for found in compare((locked, {}), (live, {}), STRICT)]
    assert sorted(said) == ["cpu.a.b: locked 1, live x", "cpu.a.b: locked none, live []"]


GONE = Unavailable("no way", "denied")
PROVE = "Run `envlock verify -p bits` here once: it computes the lockfile's canary and remembers equal bits."
ASK = "Remove the cause, or let the policy ignore the path."
LOCK = "Capture again where it can be collected, or let the policy ignore the path."
JUDGED: list[tuple[str, bool, Any, Any, str, str | None]] = [
    ("ignore", False, 1, 2, INFO, None),
    ("ignore", False, GONE, 2, INFO, None),
    ("exact", False, 1, 2, ERROR, None),
    ("exact", True, 1, 2, ERROR, None),
    ("exact", False, 1, GONE, UNKNOWN, ASK),
    ("same_minor", False, "2.1.0", "2.1.9", INFO, None),
    ("same_minor", False, "2.1.0", "2.2.0", ERROR, None),
    ("at_least", False, "2.1", "2.2", INFO, None),
    ("at_least", False, "2.2", "2.1", ERROR, None),
    ("superset", False, ["avx"], ["avx", "fma"], INFO, None),
    ("superset", False, ["avx", "fma"], ["avx"], ERROR, None),
    ("within_3_percent", False, 100, 102, INFO, None),
    ("within_3_percent", False, 100, 104, ERROR, None),
    ("proven", False, 1, 2, ERROR, PROVE),
    ("proven", True, 1, 2, INFO, None),
    ("proven", False, GONE, 2, UNKNOWN, LOCK),
    ("proven", True, GONE, 2, INFO, None),
]


@pytest.mark.parametrize(("rule", "is_proven", "old", "new", "severity", "fix"), JUDGED)
def test_how_a_difference_is_judged(
    rule: str, is_proven: bool, old: Any, new: Any, severity: str, fix: str | None
) -> None:
    policy = Policy("strict", {"cpu.model": rule})

    def side_with(value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return ({"cpu": {}}, {"cpu.model": REASON}) if value is GONE else ({"cpu": {"model": value}}, {})

    locked, live = side_with(old), side_with(new)
    proof = policy.list_witnesses("cpu.model") if is_proven else None
    (found,) = compare(locked, live, policy, proof=proof)
    said = (found.rule, found.severity, found.expected, found.actual)
    row = policy.row("cpu.model")
    assert (said, found.fix) == ((rule, severity, old, new), fix or row["fix"])
    assert (found.why, found.source, found.weight) == (row["why"], row["source"], row["weight"])


@given(TREES, TREES)
def test_findings_are_sorted_by_path(left: dict[str, Any], right: dict[str, Any]) -> None:
    paths = [found.where.fact for found in compare((left, {}), (right, {}), STRICT)]
    assert paths == sorted(paths)


@given(TREES)
def test_a_tree_differs_not_from_itself(tree: dict[str, Any]) -> None:
    assert compare((tree, {}), (tree, {}), STRICT) == []


@given(TREES, TREES)
def test_the_two_directions_find_the_same_paths(left: dict[str, Any], right: dict[str, Any]) -> None:
    there, back = differences(left, right), differences(right, left)
    assert [(path, new, old) for path, old, new in there] == back
    assert bool(there) is not is_same(left, right)


@given(TREES, TREES)
def test_the_differences_make_one_side_of_the_other(left: dict[str, Any], right: dict[str, Any]) -> None:
    """Nothing is left out: putting every finding's new value into the left tree gives the right one."""
    made = left
    for path, _, new in differences(left, right):
        made = put(made, path, ... if new is ABSENT else new)
    assert is_same(made, right)


@given(
    tree=TREES.filter(lambda tree: any(True for _ in iter_leaves(tree))), value=LEAVES | st.just(...), data=st.data()
)
def test_changing_one_leaf_yields_exactly_that_path(tree: dict[str, Any], value: Any, data: st.DataObject) -> None:
    path, old = data.draw(st.sampled_from(sorted(iter_leaves(tree), key=lambda leaf: leaf[0])))
    found = differences(tree, put(tree, path, value))
    assert found == ([] if is_same(old, value) else [(path, old, ABSENT if value is ... else value)])


@given(TREES, TREES)
def test_what_is_ignored_never_breaks(left: dict[str, Any], right: dict[str, Any]) -> None:
    findings = compare((left, {}), (right, {}), Policy("strict", {"**": "ignore"}))
    assert {f.severity for f in findings if not is_protected(f.where.fact)} <= {INFO}
    assert {f.severity for f in findings if is_protected(f.where.fact)} <= {ERROR}
    assert sorted(f.where.fact for f in findings) == [path for path, _, _ in differences(left, right)]


REASON_TOLD = Unavailable("no way", "denied")


TOLD: list[tuple[Any, Any, str, tuple[Any, ...] | None]] = [
    # live could not be told: unknown where the policy needs it, information where it does not
    (1, REASON, "exact", (UNKNOWN, 1, Unavailable("no way", "denied"), ASK_AGAIN)),
    (None, REASON, "exact", (UNKNOWN, None, Unavailable("no way", "denied"), ASK_AGAIN)),
    (..., REASON, "exact", (UNKNOWN, ABSENT, Unavailable("no way", "denied"), ASK_AGAIN)),
    (1, REASON, "ignore", (INFO, 1, Unavailable("no way", "denied"), None)),
    # nothing was locked there, so nothing can be said either
    (REASON, 1, "exact", (UNKNOWN, Unavailable("no way", "denied"), 1, LOCK_AGAIN)),
    (REASON, ..., "exact", (UNKNOWN, Unavailable("no way", "denied"), ABSENT, LOCK_AGAIN)),
    (REASON, {**REASON, "code": "other"}, "exact", (UNKNOWN, Unavailable("no way", "denied"), ..., ASK_AGAIN)),
    (REASON, REASON, "exact", (UNKNOWN, Unavailable("no way", "denied"), REASON_TOLD, ASK_AGAIN)),
    (REASON, 1, "ignore", (INFO, Unavailable("no way", "denied"), 1, None)),
    (REASON, REASON, "ignore", None),
    # what a platform never tells is no news
    ({**REASON, "code": STEADY[0]}, {**REASON, "code": STEADY[0]}, "exact", None),
]


def side(value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return facts and what is unavailable of a machine whose `cpu.flags` is a value, absent (...), or a reason."""
    told = {} if value is ... or isinstance(value, dict) else {"flags": value}
    return {"cpu": told}, {"cpu.flags": value} if isinstance(value, dict) else {}


def test_unavailable_never_reads_as_different() -> None:
    other = Unavailable("no way", "other")
    for old, new, rule, found in TOLD:
        policy = Policy("strict", {"cpu.flags": rule})
        findings = [
            (f.where.fact, f.severity, f.expected, f.actual, f.fix) for f in compare(side(old), side(new), policy)
        ]
        wanted = []
        if found is not None:
            severity, expected, actual, fix = found
            actual = other if actual is ... else actual
            wanted = [("cpu.flags", severity, expected, actual, fix or policy.row("cpu.flags")["fix"])]
        assert findings == wanted, (old, new, rule)


@pytest.mark.parametrize("gone", ["unavailable", "null", "absent"])
def test_a_section_that_is_gone_never_matches(gone: str, tmp_path: Path) -> None:
    found = take_snapshot(complete(tmp_path))
    severity = UNKNOWN if gone == "unavailable" else ERROR
    sections = ["python", "packages", "tensorflow", "keras", "numpy", "cpu", "system", "environ"]
    assert set(sections) <= set(found.facts)
    for section, policy in product(sections, names()):
        facts = {name: value for name, value in found.facts.items() if name != section}
        if gone == "null":
            facts[section] = None
        live = (facts, {**found.unavailable, section: REASON} if gone == "unavailable" else found.unavailable)
        findings = compare((found.facts, found.unavailable), live, Policy(policy))
        assert [(f.where.fact, f.severity) for f in findings] == [(section, severity)], policy


def _changed(value: Any) -> list[Any]:
    """Return another value, another type, and nothing."""
    if isinstance(value, str):
        return [value + "x", [value], None, ...]
    if isinstance(value, list):
        return [[*value, "x"], value[1:] if value else "x", ",".join(map(str, value)), None, ...]
    if isinstance(value, bool):
        return [not value, int(value), None, ...]
    return [(value or 0) + 1, str(value), ...] + ([None] if value is not None else [])


LET_THROUGH = {
    "cpu.quota",
    "cpu.model_name",
    "environ.CUDA_VISIBLE_DEVICES",
    "python.compiler",
    "python.prefix_kind",
    "python.startup.known",
    "python.text_encoding",
    "python.time_zone",
    "system.container",
    "system.kernel_release",
}
"""What `strict` lets through by name, beside `packages.*.installer`; policy.toml has the reason of each."""


def _judge(locked: dict[str, Any], live: Snapshot) -> tuple[int, list[Finding]]:
    policy = {"name": "strict", "overrides": {}}
    report: Report = judge({"facts": locked, "unavailable": live.unavailable, "policy": policy}, live)
    return report.exit_code, report.findings


def test_under_strict_any_change_of_any_leaf_of_a_lock_is_refused_by_name(tmp_path: Path) -> None:
    live = take_snapshot(complete(tmp_path))
    every = list(iter_leaves(live.facts))
    assert len(every) > 120
    for path, value in every:
        for other in _changed(value):
            code, findings = _judge(put(live.facts, path, other), live)
            quiet = path in LET_THROUGH or path.endswith(".installer")
            if path in ("environ.PYTHONHASHSEED", "python.hash", "jax", "torch") and other is ...:
                assert (code, findings) == (0, [])  # held only where the lockfile has one
                continue
            rule = Policy().row(path)["rule"]
            if rule == "exact_where_asked" and other is ...:
                assert (code, [f.rule for f in findings]) == (0, [] if value is None else ["not-held"])
                continue
            # An unset variable leads to nothing, whatever it says.
            leads = (find_effect(path) or "").startswith("named.")
            quiet = quiet or (leads and isinstance(other, (str, type(None))))
            assert (code, [f.where.fact for f in findings]) == (0 if quiet else 1, [path]), other


def test_under_strict_any_leaf_added_to_a_lock_is_refused_by_name(tmp_path: Path) -> None:
    live = take_snapshot(complete(tmp_path))
    folders = {path.rpartition(".")[0] for path, _ in iter_leaves(live.facts)} - {""}
    assert len(folders) > 12
    for folder in folders:
        added: list[Any] = ["x", None, {}, ["x"]]
        for value in added:
            code, findings = _judge(put(live.facts, folder + ".new", value), live)
            if value is None and Policy().row(folder + ".new")["rule"] == "exact_where_asked":
                continue  # as if this envlock had asked, and found none
            assert (code, [f.where.fact for f in findings]) == (1, [folder + ".new"])


THREADS = [(1, "1", INFO), (2, "1", ERROR), (2, "0", INFO), (2, "-2", ERROR), (None, "None", ERROR)]
"""The threads of both sides, the variable of one, and what its difference is."""


@pytest.mark.parametrize(("count", "value", "severity"), THREADS)
@pytest.mark.parametrize(("fact", "name"), [("intra_op_threads", "INTRAOP"), ("inter_op_threads", "INTEROP")])
@pytest.mark.parametrize("tier", ["strict", "same-arch"])
def test_a_thread_count_that_the_other_side_has_without_it_is_the_same(
    tier: str, fact: str, name: str, count: int | None, value: str, severity: str
) -> None:
    unset, by_hand = ({"cpu": {fact: count}, "environ": {f"TF_NUM_{name}_THREADS": text}} for text in (None, value))
    for left, right in (unset, by_hand), (by_hand, unset):
        assert [found.severity for found in compare((left, {}), (right, {}), Policy(tier))] == [severity]


SPELLINGS: list[tuple[str, list[str | None]]] = [
    ("TF_NUM_INTRAOP_THREADS", [None, "0", ""]),
    ("TF_NUM_INTRAOP_THREADS", ["1"]),
    ("TF_DETERMINISTIC_OPS", ["1", "true", "TRUE"]),
    ("TF_DETERMINISTIC_OPS", [None, "0", "False"]),
    ("TF_DETERMINISTIC_OPS", [""]),  # its reader ends the process
    ("TF_CUDNN_USE_AUTOTUNE", [None, "", "1"]),
    ("TF_CUDNN_USE_AUTOTUNE", ["0", "false"]),
    ("TF_ENABLE_ONEDNN_OPTS", [None, ""]),  # the processor decides
    ("TF_ENABLE_ONEDNN_OPTS", ["1", "true"]),
    ("TF_ENABLE_ONEDNN_OPTS", ["0", "false"]),
    ("TF_USE_DEEP_CONV2D", [None, "0"]),
    ("TF_USE_DEEP_CONV2D", ["1", "false"]),  # anything but 0 is true
    ("TENSORFLOW_USE_CUSTOM_CONTRACTION_KERNEL", [None, "1", "False"]),  # its reader minds the case
    ("TENSORFLOW_USE_CUSTOM_CONTRACTION_KERNEL", ["0", "false"]),
    ("TF_CONV2D_USE_FP16_ACCUMULATE", [None, "0", "true"]),  # anything but 1 is false
    ("TF_CONV2D_USE_FP16_ACCUMULATE", ["1"]),
    ("OPENBLAS_NUM_THREADS", [None]),  # joblib leaves a value to its workers, and sets one where there is none
    ("OPENBLAS_NUM_THREADS", ["0"]),
    ("OPENBLAS_NUM_THREADS", [""]),
    ("NCCL_NVLS_ENABLE", ["0"]),
    ("NCCL_NVLS_ENABLE", ["1"]),
    ("NCCL_NVLS_ENABLE", ["true"]),  # a number to its reader: 0
]
"""A variable, and values that its reader takes for the same; those of two rows of one variable differ."""


@pytest.mark.parametrize("name", sorted({name for name, _ in SPELLINGS}))
def test_a_value_is_what_its_reader_takes_it_for(name: str) -> None:
    groups = [values for other, values in SPELLINGS if other == name]
    told = {
        (left, right): compare(({"environ": {name: left}}, {}), ({"environ": {name: right}}, {}), Policy("strict"))
        for left in chain(*groups)
        for right in chain(*groups)
    }
    refused = {pair for pair, findings in told.items() if [each for each in findings if each.severity == ERROR]}
    assert refused == {
        (left, right) for one in groups for other in groups if one is not other for left in one for right in other
    }


# --- CUDA that nothing uses


def _cuda(driver: str | None = None, linkage: str = "dlopen", **libraries: str) -> dict[str, Any]:
    """Return the facts of a TensorFlow that finds these files and no others."""

    def found(file: str | None) -> dict[str, Any]:
        by = "not found" if file is None else "ld.so.cache"
        return {"linkage": linkage, "file": file, "resolved_by": by, "version": file and "1"}

    names = {"cuda_driver": driver, "cudart": None, "cupti": None, **libraries}
    return {"cuda": {name: found(file) for name, file in names.items()}}


NO_CUDA = _cuda()
TOOLKIT = {"cupti": "/usr/local/cuda/lib/libcupti.so", "cudart": "/usr/local/cuda/lib/libcudart.so.12"}
IDLE: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], set[str]]] = {
    "a toolkit on one side": (_cuda(**TOOLKIT), NO_CUDA, {}, {INFO}),
    "a toolkit elsewhere": (_cuda(cupti="{elsewhere}/libcupti.so"), NO_CUDA, {}, {INFO}),
    "what only one side lists": (NO_CUDA, _cuda(cudnn_ops="/usr/lib/libcudnn_ops.so.9"), {}, {INFO}),
    "a driver on one side": (_cuda(**TOOLKIT), _cuda("/usr/lib/libcuda.so.1"), {}, {ERROR}),
    "a driver on both": (_cuda("/usr/lib/libcuda.so.1", **TOOLKIT), _cuda("/usr/lib/libcuda.so.1"), {}, {ERROR}),
    "a driver that may be there": (_cuda(**TOOLKIT), NO_CUDA, {"cuda.cuda_driver": REASON}, {ERROR, UNKNOWN}),
    "a library that may be anything": (NO_CUDA, NO_CUDA, {"cuda.cupti": REASON}, {UNKNOWN}),
    "a wheel of the environment": (_cuda(cupti="{prefix}/lib/libcupti.so"), NO_CUDA, {}, {ERROR}),
    "a runtime that is no system's": (_cuda(cudart="{elsewhere}/libcudart.so.12"), NO_CUDA, {}, {ERROR}),
    "a build that is linked with it": (_cuda(linkage="needed", **TOOLKIT), NO_CUDA, {}, {ERROR}),
}


@pytest.mark.parametrize(("locked", "live", "unknown", "severities"), IDLE.values(), ids=IDLE)
def test_a_toolkit_that_nothing_can_use_may_differ(
    locked: dict[str, Any], live: dict[str, Any], unknown: dict[str, Any], severities: set[str]
) -> None:
    one: tuple[dict[str, Any], dict[str, Any]] = (locked, {})
    for left, right in (one, (live, unknown)), ((live, unknown), one):
        # No policy holds the place of a file.
        found = [each for each in compare(left, right, STRICT) if not str(each.where).endswith(".file")]
        assert {each.severity for each in found} == severities


@pytest.mark.parametrize("by", ["loaded", "LD_PRELOAD"])
def test_a_library_that_is_in_the_process_already_counts(by: str) -> None:
    loaded = _cuda(cupti="/usr/local/cuda/lib/libcupti.so")
    loaded["cuda"]["cupti"]["resolved_by"] = by
    assert ERROR in {each.severity for each in compare((NO_CUDA, {}), (loaded, {}), STRICT)}


def test_a_library_that_is_linked_into_tensorflow_counts() -> None:
    linked = _cuda()
    linked["cuda"]["cupti"] = {"linkage": "static", "file": None, "resolved_by": None, "version": "1"}
    assert ERROR in {each.severity for each in compare((NO_CUDA, {}), (linked, {}), STRICT)}


def test_a_project_may_hold_the_toolkit_all_the_same() -> None:
    held = Policy("strict", {"cuda.cupti.version": "exact"})
    found = [each.where.fact for each in compare((_cuda(**TOOLKIT), {}), (NO_CUDA, {}), held) if each.severity == ERROR]
    assert found == ["cuda.cupti.version"]
