"""docs/reference/advice.md: the advice in the texts that this project began with, and what became
of each piece.
"""

from __future__ import annotations

from tests.diagnosis.advice import VERSIONS, Claim, claims, texts

HEAD = """\
<!-- written by tools/generate.py from tests/diagnosis/advice.toml -->
# Advice on reproducible TensorFlow, tried

This project began with five texts of advice and a page of NVIDIA's. For each of their claims this page gives the
TensorFlow versions for which it is right and sufficient, the state today, what envlock does about it, and the evidence.
Tests check what a CPU can show: they run `tests/real/advice_program.py` under tensorflow-cpu {versions}
(CPython 3.11), with the same outcome in each, and the named rules on the example of every row. What only a
GPU can show rests on the sources of the [determinism reference](determinism.md).
"""


def page() -> str:
    """Return the page, a section for each text."""
    versions = f"{', '.join(VERSIONS[:-1])} and {VERSIONS[-1]}"
    return HEAD.format(versions=versions) + "".join(_section(text) for text in texts())


def _section(text: str) -> str:
    found = "".join(_lines(claim) for claim in claims() if claim.text == text)
    return f"\n## {text}: {texts()[text]}\n{found}"


def _lines(claim: Claim) -> str:
    holds = (
        ", ".join("every version" if each == "*" else f"`{each}`" for each in claim.holds)
        or "no version"
    )
    return (
        f"\n**{claim.says}**\n\n"
        f"- right and sufficient for: {holds}\n"
        f"- today: {claim.today}\n"
        f"- envlock: {claim.envlock}\n"
        f"- evidence: {_evidence(claim)}\n"
    )


def _evidence(claim: Claim) -> str:
    shown = [f"{name}: *{outcome}*" for name, outcome in claim.shown.items()]
    if claim.source is not None:
        source = claim.source.removeprefix("source:")
        shown.append(f"<{source}>" if source.startswith("https://") else f"`{source}`")
    return "; ".join(shown)
