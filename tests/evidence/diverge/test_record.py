"""Recording: what a header says of the circumstances."""

from __future__ import annotations

from envlock.evidence.diverge.trace_recording import collect_conditions


def test_conditions_are_facts_by_path_without_packages() -> None:
    facts = {
        "cpu": {"vendor": "GenuineIntel", "flags": ["avx", "avx2"], "quota": None},
        "packages": {"numpy": {"version": "2.4.6"}},
        "gpu": None,
        "environ": {"X": "y" * 500},
    }
    assert collect_conditions(facts) == {"cpu.vendor": "GenuineIntel", "cpu.flags": "avx avx2", "environ.X": "y" * 400}
