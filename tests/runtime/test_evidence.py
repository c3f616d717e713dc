"""A verdict needs evidence: no rule of a lockfile hides what computes, and nothing compared is no match."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from envlock.runtime.collectors import Snapshot
from envlock.runtime.collectors.keras_settings import DISTRIBUTIONS as KERAS
from envlock.runtime.collectors.tensorflow import DISTRIBUTIONS as TENSORFLOW
from envlock.runtime.compare import compare, find_uncompared
from envlock.runtime.judgement import judge, judge_here
from envlock.runtime.machine_proof import list_results
from envlock.runtime.policies import Policy, is_protected, names
from envlock.runtime.report import Report
from tests.evidence.canaries import section
from tests.locks import document

FACTS: dict[str, Any] = {
    "python": {"version": "3.11.7"},
    "packages": {
        name: {"version": version, "origin": None, "wheel_tags": None, "installer": "pip"}
        for name, version in (("h5py", "3.1"), ("keras", "3.12"), ("tensorflow-cpu", "2.21.0"), ("mine", "1.0"))
    },
    "tensorflow": {"version": "2.21.0"},
    "environ": {"TF_DETERMINISTIC_OPS": None},
}


def lock_of(*without: str, policy: str = "strict", overrides: Any = None, **project: Any) -> dict[str, Any]:
    """Return a lockfile with these rules of its own, which lacks some packages."""
    facts = copy.deepcopy(FACTS)
    for name in without:
        del facts["packages"][name]
    rules = {"name": policy, "overrides": overrides or {}}
    return document(facts=facts, unavailable={}, policy=rules, **({"project": project} if project else {}))


def live(**versions: str) -> Snapshot:
    facts = copy.deepcopy(FACTS)
    for name, version in versions.items():
        facts["packages"][name]["version"] = version
    return Snapshot(facts, {})


def said(report: Report) -> list[tuple[str, str]]:
    return [(each.severity, each.message) for each in report.findings]


@pytest.mark.parametrize("overrides", [True, False])
@pytest.mark.parametrize("name", ["tensorflow-cpu", "keras"])
def test_the_name_of_the_project_hides_nothing_that_computes(name: str, overrides: bool) -> None:
    report = judge(lock_of(name, name=name), live(), overrides=overrides)
    version = FACTS["packages"][name]["version"]
    assert said(report)[0] == ("error", f"packages.{name}: locked absent, live {version}")


def test_the_name_of_the_project_hides_no_package_that_the_lockfile_locks() -> None:
    report = judge(lock_of(name="h5py"), live(h5py="3.2"))
    assert said(report) == [("error", "packages.h5py.version: locked 3.1, live 3.2")]


def test_without_the_rules_of_the_lockfile_the_projects_own_package_is_installed_from_a_folder() -> None:
    lock, here = lock_of("mine", name="mine"), live()
    assert judge(lock, here).headline == "matches under policy strict, with 1 package of the project"
    assert said(judge(lock, here, overrides=False)) == [("error", "packages.mine: locked absent, live 1.0")]
    here.facts["packages"]["mine"]["origin"] = {"url": "file:", "editable": True}
    assert judge(lock, here, overrides=False).match


def test_a_package_that_passes_by_the_lockfile_is_counted_in_the_headline() -> None:
    by_entries = judge(lock_of(entry=["train.py"], held={"keras": "imported by train"}), live(h5py="1", mine="2"))
    by_tooling = judge(lock_of(tooling=["h5py"]), live(h5py="1"))
    assert by_entries.headline == "matches under policy strict, with 2 packages exempt by the lockfile's entry points"
    assert by_tooling.headline == "matches under policy strict, with 1 package exempt by the lockfile as tooling"
    assert judge(lock_of(tooling=["h5py"]), live(h5py="1"), overrides=False).exit_code == 1


def test_what_envlock_has_set_itself_is_counted_and_no_fact_without_overrides(monkeypatch: pytest.MonkeyPatch) -> None:
    """`run --deterministic` sets it, and so can whoever writes ENVLOCK_ADDED."""
    monkeypatch.setenv("TF_DETERMINISTIC_OPS", "1")
    monkeypatch.setenv("ENVLOCK_ADDED", "TF_DETERMINISTIC_OPS=1 TF_NUM_INTRAOP_THREADS=2 PYTHONHASHSEED=0")
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "2")
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    assert judge_here(lock_of(), live()).headline == "matches under policy strict, with 1 variable set by envlock"
    report = judge_here(lock_of(), live(), overrides=False)
    assert said(report) == [("error", "environ.TF_DETERMINISTIC_OPS: locked unset, live 1")]


def test_entry_points_exempt_nothing_that_computes() -> None:
    report = judge(lock_of(entry=["train.py"], held={}), live(keras="1"))
    assert said(report) == [("error", "packages.keras.version: locked 3.12, live 1")]


def test_a_lockfile_that_ignores_everything_compares_what_computes_all_the_same() -> None:
    report = judge(lock_of(overrides={"**": "ignore"}), live(keras="1"))
    assert (report.exit_code, said(report)[0]) == (1, ("error", "packages.keras.version: locked 3.12, live 1"))
    assert report.findings[0].why.endswith(
        " (This project's rule to ignore it does not apply: only a policy's own rows exempt TensorFlow, Keras, JAX, "
        "PyTorch, NumPy and CUDA.)"
    )


def test_where_no_version_was_compared_nothing_matches() -> None:
    lock = lock_of("keras", "tensorflow-cpu", overrides={"**": "ignore"})
    lock["facts"]["tensorflow"] = None
    here = Snapshot({name: lock["facts"][name] for name in lock["facts"]}, {})
    report = judge(lock, here)
    assert (report.exit_code, report.headline, said(report)) == (
        4,
        "cannot decide under policy strict, with 1 override: 2 needed facts were not compared",
        [("unknown", "python.version: no version was compared"), ("unknown", "packages: no version was compared")],
    )
    assert judge(lock, here, overrides=False).match


def test_an_environment_without_any_package_that_computes_never_matches() -> None:
    lock = lock_of("keras", "tensorflow-cpu", "h5py", "mine")
    lock["facts"]["tensorflow"] = None
    here = Snapshot(copy.deepcopy(lock["facts"]), {})
    nothing = [("unknown", "packages: no version was compared")]
    assert (judge(lock, here).exit_code, said(judge(lock, here))) == (4, nothing)
    for facts in (lock["facts"], here.facts):
        facts["packages"]["pip"] = {"version": "26.1"}  # which no policy judges
    assert (judge(lock, here).exit_code, said(judge(lock, here))) == (4, nothing)
    here.facts["packages"]["h5py"] = {"version": "3.1"}
    assert said(judge(lock, here)) == [("error", "packages.h5py: locked absent, live 3.1")]


def test_two_empty_sides_are_no_match() -> None:
    report = judge(document(facts={}, unavailable={}), Snapshot({}, {}))
    assert (report.exit_code, said(report)) == (
        4,
        [("unknown", "python.version: no version was compared"), ("unknown", "packages: no version was compared")],
    )
    shown = [(each.rule, str(each.where), each.why, each.fix, each.source, each.weight) for each in report.findings]
    assert shown == [
        (
            "compared",
            path,
            "A verdict needs evidence: Python, TensorFlow where there is one, and at least one package, compared.",
            "Remove the rule of the lockfile or the project that ignores it, or capture again.",
            "design",
            100,
        )
        for path in ("python.version", "packages")
    ]


def uncompared_of(locked: dict[str, Any], here: dict[str, Any], *untold: str) -> list[str]:
    """Return the paths of which no version was compared; `untold` is what the locked side says it could not tell."""
    unavailable = {path: {"reason": "no way", "code": "x"} for path in untold}
    found = find_uncompared((locked, unavailable), (here, {}), Policy())
    return [str(each.where) for each in found]


def test_a_tensorflow_without_a_version_is_no_evidence_on_either_side() -> None:
    rest = {"python": {"version": "3.11.7"}, "packages": {"h5py": {"version": "3.1"}}}
    empty, without = {**rest, "tensorflow": {"version": None}}, {**rest, "tensorflow": None}
    assert uncompared_of(empty, empty) == ["tensorflow.version"]
    assert uncompared_of(empty, without) == ["tensorflow.version"]
    assert uncompared_of(without, empty) == ["tensorflow.version"]
    assert uncompared_of(without, without) == uncompared_of(rest, rest) == []


@pytest.mark.parametrize("path", ["python", "python.version"])
def test_what_a_side_could_not_tell_is_a_finding_of_its_own(path: str) -> None:
    rest = {"packages": {"h5py": {"version": "3.1"}}}
    assert uncompared_of(rest, rest) == ["python.version"]
    assert uncompared_of(rest, rest, path) == []
    assert uncompared_of(rest, rest, "python.compiler") == ["python.version"]


def test_a_package_that_no_policy_judges_is_no_evidence_beside_one_without_a_version() -> None:
    facts = {"python": {"version": "3.11.7"}, "packages": {"h5py": {"version": None}, "pip": {"version": "26.1"}}}
    assert uncompared_of(facts, facts) == ["packages"]


def test_packages_that_a_side_was_not_asked_for_are_no_evidence() -> None:
    rest = {"python": {"version": "3.11.7"}}
    assert uncompared_of({**rest, "packages": {}}, {**rest, "packages": {}}) == ["packages"]
    assert uncompared_of({**rest, "packages": {}}, rest) == ["packages"]
    assert uncompared_of(rest, {**rest, "packages": {}}) == ["packages"]


def with_backend(backend: str, *, locked: Any = None, here: Any = None) -> tuple[dict[str, Any], Snapshot]:
    """Return a lockfile and a machine on which Keras computes with a back end, and their facts of it."""
    lock, machine = lock_of(), live()
    for facts, own in ((lock["facts"], locked), (machine.facts, here)):
        facts["keras"] = {"config": {"backend": backend}}
        if own is not None:
            facts[backend] = own
    return lock, machine


def jax(**settings: str | None) -> dict[str, Any]:
    return {"version": "0.10.2", "jaxlib": "0.10.2", "settings": {"JAX_ENABLE_X64": None, **settings}}


@pytest.mark.parametrize("own", [None, jax()])
@pytest.mark.parametrize("backend", ["jax", "numpy", "torch", "openvino"])
def test_where_a_side_has_no_facts_of_keras_back_end_the_answer_is_open(backend: str, own: Any) -> None:
    """JAX's own variables changed the loss of a model from 0.612 to 0.688, and strict matched."""
    lock, here = with_backend(backend, here=None if backend in ("openvino", "numpy") else own)
    report = judge(lock, here)
    assert (report.exit_code, said(report)) == (
        4,
        [("unknown", f"keras.config.backend: nothing below Keras' {backend} back end is locked")],
    )
    assert report.findings[0].why == (
        "Another library computes everything, and of its own settings, which change bits, the lockfile has no facts."
    )
    assert report.findings[0].fix == (
        "Use Keras' TensorFlow back end, or the policy functional, under which bits may differ."
        if backend == "openvino"
        else "Capture again where Keras computes with it: this envlock locks its version and its settings."
    )
    shown = report.findings[0]
    assert (shown.rule, str(shown.where), shown.source, shown.weight) == (
        *("compared", "keras.config.backend"),
        *("design", 100),
    )
    assert judge(lock, here, "functional").match
    here.facts["keras"]["config"]["backend"] = "tensorflow"
    assert said(judge(lock, here))[0] == ("error", f"keras.config.backend: locked {backend}, live tensorflow")


@pytest.mark.parametrize("tier", names())
def test_the_settings_of_keras_back_end_are_compared(tier: str) -> None:
    lock, here = with_backend("jax", locked=jax(), here=jax())
    assert judge(lock, here, tier).match
    lock, here = with_backend("jax", locked=jax(), here=jax(JAX_ENABLE_X64="1"))
    severity = "info" if tier == "functional" else "error"
    assert said(judge(lock, here, tier)) == [
        (severity, "jax.settings.JAX_ENABLE_X64: locked none, live 1"),
    ]


def test_the_fix_of_another_back_end_leads_to_the_locked_one() -> None:
    lock, here = with_backend("jax", locked=jax(), here=jax())
    here.facts["keras"] = {"config": {"backend": "tensorflow"}}
    (finding,) = judge(lock, here).findings
    fix = "Let KERAS_BACKEND, or else `backend` in ~/.keras/keras.json, choose jax, as locked."
    assert (finding.where.fact, finding.fix) == ("keras.config.backend", fix)


def test_the_canary_proves_nothing_of_another_back_end() -> None:
    lock, here = with_backend("jax", locked=jax(), here=jax())
    lock["policy"]["name"] = "bits"
    lock["numerics"] = section()
    lock["facts"]["cpu"], here.facts["cpu"] = {"flags": ["avx"]}, {"flags": ["avx2"]}
    assert not judge(lock, here, proof=list_results(lock)).match
    for facts in (lock["facts"], here.facts):
        facts["keras"] = {"config": {"backend": "tensorflow"}}
        del facts["jax"]
    assert judge(lock, here, proof=list_results(lock)).match


def with_libraries(locked: Any, here: Any) -> tuple[dict[str, Any], Snapshot]:
    """Return a lockfile and a machine with JAX beside TensorFlow, which computes for Keras."""
    lock, machine = lock_of(), live()
    for facts, own in ((lock["facts"], locked), (machine.facts, here)):
        facts["keras"] = {"config": {"backend": "tensorflow"}}
        facts.update(own)
    return lock, machine


def test_the_canary_proves_nothing_of_a_library_beside_tensorflow() -> None:
    """XLA on a processor with other instructions gives the program other bits, whatever TensorFlow gives."""
    lock, here = with_libraries({"jax": jax()}, {"jax": jax()})
    lock["policy"]["name"] = "bits"
    lock["numerics"] = section()
    lock["facts"]["cpu"], here.facts["cpu"] = {"flags": ["avx"]}, {"flags": ["avx2"]}
    assert not judge(lock, here, proof=list_results(lock)).match
    report = judge_here(lock, here)
    assert report.notes[-1] == (
        "no proof for this machine is possible: the program can compute with jax, of which the canary computes nothing"
    )
    assert report.findings[0].fix.startswith("Verify on the locked hardware")
    lock["project"] = {"entry": ["t.py"], "held": {"h5py": "imported by t.py"}}
    assert judge(lock, here, proof=list_results(lock)).match


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_a_library_that_the_entry_points_cannot_reach_may_differ(library: str) -> None:
    lock, here = with_libraries({library: jax()}, {library: jax(JAX_ENABLE_X64="1")})
    assert said(judge(lock, here)) == [("error", f"{library}.settings.JAX_ENABLE_X64: locked none, live 1")]
    lock["project"] = {"entry": ["t.py"], "held": {"h5py": "imported by t.py"}}
    report = judge(lock, here)
    assert (report.match, said(report)[0][0]) == (True, "info")
    assert not judge(lock, here, overrides=False).match
    lock["project"]["held"][library] = "imported by t.py"
    assert not judge(lock, here).match


def test_a_rule_of_a_lockfile_does_not_let_a_library_that_computes_go() -> None:
    lock, here = with_libraries({"jax": jax()}, {"jax": jax(JAX_ENABLE_X64="1")})
    lock["policy"]["overrides"] = {"jax.**": "ignore"}
    assert not judge(lock, here).match


def test_an_older_lockfile_matches_as_it_did_and_says_what_it_does_not_hold() -> None:
    lock, here = with_libraries({}, {"jax": jax(JAX_ENABLE_X64="1"), "torch": None})
    report = judge(lock, here)
    assert (report.exit_code, report.headline, said(report)) == (
        0,
        "matches under policy strict, but jax is installed and not held by this lockfile",
        [("warning", "jax is installed and not held by this lockfile")],
    )
    assert report.findings[0].fix == "Capture again: `envlock capture`."
    here.facts["torch"] = {"version": "2.13.0", "settings": {}}
    assert judge(lock, here).headline.endswith("but jax and torch are installed and not held by this lockfile")
    assert said(judge(lock, here, "functional")) == []
    lock["project"] = {"entry": ["t.py"], "held": {"h5py": "imported by t.py"}}
    assert {severity for severity, _ in said(judge(lock, here))} == {"info"}
    lock["unavailable"] = {name: {"reason": "no way", "code": "x"} for name in ("jax", "torch")}
    del lock["project"]
    assert judge(lock, here).exit_code == 4


def test_a_setting_that_a_side_does_not_list_is_unset() -> None:
    """The next envlock knows more settings; a variable that no table knows is listed only where it is set."""
    lock, here = with_libraries({"jax": jax()}, {"jax": jax(JAX_NEWER=None)})
    assert said(judge(lock, here)) == said(judge({**lock, "facts": here.facts}, Snapshot(lock["facts"], {}))) == []
    here.facts["jax"] = jax(JAX_NEWER="1")
    assert said(judge(lock, here)) == [("error", "jax.settings.JAX_NEWER: locked absent, live 1")]


def test_the_back_end_whose_facts_are_always_locked_is_compared() -> None:
    lock, here = lock_of(), live()
    for facts in (lock["facts"], here.facts):
        facts["keras"] = {"config": {"backend": "tensorflow"}}
    assert judge(lock, here).match


def test_keras_on_numpy_is_compared_by_the_settings_of_jax() -> None:
    """Its neural network operations are JAX's: another of its switches gives other bits."""
    lock, here = with_backend("numpy")
    for facts, own in ((lock["facts"], jax()), (here.facts, jax(JAX_ENABLE_X64="1"))):
        facts["jax"] = own
    assert said(judge(lock, here)) == [("error", "jax.settings.JAX_ENABLE_X64: locked none, live 1")]
    here.facts["jax"] = jax()
    assert judge(lock, here).match


VARIABLE = "environ.TF_ENABLE_ONEDNN_OPTS"
DONE = "the process starts (`envlock run` does)."
KERAS_JSON = "~/.keras/keras.json"
WAYS: list[tuple[str, Any, Any, str]] = [
    (VARIABLE, None, "0", f"Unset TF_ENABLE_ONEDNN_OPTS before {DONE}"),
    (VARIABLE, "1", "0", f"Set TF_ENABLE_ONEDNN_OPTS=1 before {DONE}"),
    (VARIABLE, "sha256:1", "0", f"Set or unset TF_ENABLE_ONEDNN_OPTS as locked, before {DONE}"),
    (VARIABLE, "1 2", "0", f"Set or unset TF_ENABLE_ONEDNN_OPTS as locked, before {DONE}"),
    ("keras.config.floatx", "float32", "float16", f"Let `floatx` in {KERAS_JSON} be float32, as locked."),
    (
        *("keras.config.backend", "jax", "tensorflow"),
        f"Let KERAS_BACKEND, or else `backend` in {KERAS_JSON}, choose jax, as locked.",
    ),
]


@pytest.mark.parametrize(("path", "locked", "here", "fix"), WAYS)
def test_a_fix_names_the_way_to_the_locked_state(path: str, locked: Any, here: Any, fix: str) -> None:
    """The lockfile may want JAX: then to unset KERAS_BACKEND is no way there."""

    def nest(value: Any) -> dict[str, Any]:
        for name in reversed(path.split(".")):
            value = {name: value}
        return value  # type: ignore[no-any-return]

    (finding,) = compare((nest(locked), {}), (nest(here), {}), Policy("strict"))
    assert finding.fix == fix


def test_every_name_of_what_computes_is_protected() -> None:
    computing = {*TENSORFLOW, *KERAS, "numpy", "nvidia-cudnn-cu12"}
    assert [name for name in computing if not is_protected(f"packages.{name}.version")] == []
    assert not is_protected("packages.tensorflow-datasets.version")


@pytest.mark.parametrize("tier", names())
def test_every_tier_judges_the_versions_that_a_verdict_needs(tier: str) -> None:
    packages = [f"packages.{each}.version" for each in (*TENSORFLOW, *KERAS, "numpy")]
    paths = ["python.version", "tensorflow.version", *packages]
    assert [path for path in paths if Policy(tier).row(path)["rule"] == "ignore"] == []
