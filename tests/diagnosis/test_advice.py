"""Every claim of the texts is whole, and what envlock is said to do about it, it does. tests/real shows the rest."""

from __future__ import annotations

from pathlib import Path

from packaging.specifiers import SpecifierSet

from envlock.data.determinism import load_source_table
from envlock.data.lint_tables import load_dataset_rules, load_lint_rules
from envlock.diagnosis.checks import diagnose
from envlock.diagnosis.doctor_table import load_titles
from envlock.linter.linter import Settings, lint
from tests.diagnosis.advice import Claim, claims, texts
from tests.diagnosis.environments import changed, clean


def rules(code: str, folder: Path, version: str) -> set[str]:
    """Return the rules that find something in code."""
    file = folder / "train.py"
    file.write_text(code + "\n", encoding="utf-8")
    return {finding.rule for finding in lint([str(file)], Settings(version))}


def test_the_linter_finds_it_and_is_silent_on_what_is_right(tmp_path: Path) -> None:
    linted = [claim for claim in claims() if claim.lint]
    assert len(linted) > 10
    for claim in linted:
        assert claim.lint in rules(claim.code or "", tmp_path, claim.tensorflow), claim.id
        if claim.right is not None:
            assert rules(claim.right, tmp_path, claim.tensorflow) <= {"ENV108"} - {claim.lint}, claim.id


def test_the_doctor_finds_it_and_nothing_before() -> None:
    examined = [claim for claim in claims() if claim.doctor]
    assert {claim.id: _examined(claim) for claim in examined} == {claim.id: [claim.doctor] for claim in examined}
    assert examined != []


def _examined(claim: Claim) -> list[str]:
    sound = clean(".".join(claim.tensorflow.split(".")[:2]))
    assert diagnose(sound) == []
    values = {name: None if value == "<unset>" else value for name, value in claim.environ.items()}
    packages = {**sound.facts["packages"], **{name: {"version": v} for name, v in claim.packages.items()}}
    if claim.doctor == "patch-missing":
        del packages["framework-reproducibility"]
    return [finding.rule for finding in diagnose(changed(sound, ("packages", packages), **values))]


def test_five_texts_and_one_page_each_have_their_claims_under_names_of_their_own() -> None:
    assert list(texts()) == ["000", "001", "002", "003", "004", "NVIDIA"]
    assert {claim.text for claim in claims()} == set(texts())
    assert len({claim.id for claim in claims()}) == len(claims())


def test_versions_and_sources_are_real() -> None:
    sources = {row.id for row in load_source_table().source}
    for claim in claims():
        for specifier in claim.holds:
            assert specifier == "*" or len(SpecifierSet(specifier)) >= 1
        if claim.source is not None and not claim.source.startswith("https://"):
            assert claim.source.removeprefix("source:") in sources, claim.id


def test_rules_that_are_named_exist() -> None:
    known = {*load_titles(), *load_lint_rules(), *load_dataset_rules(), *(row.id for row in load_source_table().source)}
    for claim in claims():
        words = {word.strip("`.,;:()") for word in claim.envlock.split()}
        named = {word for word in words if (word.startswith("ENV") and word != "ENV") or word in known}
        assert named <= known, claim.id
        assert {claim.lint, claim.doctor} - {None} <= named, claim.id
