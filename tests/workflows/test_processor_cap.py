"""The machines of lockfiles, and the proposal of a cap."""

from __future__ import annotations

from typing import Any

import pytest

from envlock.lock.document import validate
from envlock.lock.models import Lockfile
from envlock.runtime.errors import UsageError
from envlock.workflows import processor_cap as workflow
from tests.locks import FACTS, document
from tests.numerics.canaries import section

AVX2 = ["avx", "avx2", "f16c", "fma", "sse4_1", "sse4_2"]
WIDE = [*AVX2, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"]


def lock(flags: list[str], **changes: Any) -> Lockfile:
    """Return a lockfile of a machine with these flags."""
    cpu = {"model_name": "A processor", "flags": flags, "intra_op_threads": 4, "inter_op_threads": 2}
    facts = {
        **FACTS,
        "numpy": {"version": "2.4.6"},
        "cpu": cpu,
        "environ": {"OPENBLAS_CORETYPE": "Haswell", "XLA_FLAGS": None},
    }
    return validate(document(facts=facts, **changes), "x.lock")


def test_every_machine_of_a_lockfile_is_one_and_the_canary_is_that_of_the_first() -> None:
    other = {"facts": {"cpu": {"flags": WIDE}}, "unavailable": {}}
    first, second = workflow.list_members(lock(AVX2, machines=[other], numerics=section()), "team.lock")
    assert (first.name, second.name) == ("team.lock", "team.lock, machine 2")
    assert (first.flags, second.flags) == (frozenset(AVX2), frozenset(WIDE))
    assert first.threads == {"intra_op_threads": 4, "inter_op_threads": 2}
    assert second.threads == {}
    assert first.variables == {"OPENBLAS_CORETYPE": "Haswell"}
    assert first.versions["numpy"] == "2.4.6"
    assert (first.numerics is not None, second.numerics) == (True, None)


def test_a_proposal_is_for_the_lockfiles_that_are_named() -> None:
    report = workflow.portable([lock(AVX2), lock(WIDE)])
    assert (report.exit_code, report.attachments["cap"]) == (4, "AVX2")
    with pytest.raises(UsageError, match="no lockfile is named"):
        workflow.portable([])
