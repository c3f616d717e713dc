"""docs/reference/advice.md: what the texts that this project began with advise, and what became of it."""

from __future__ import annotations

from tests.determinism.advice import VERSIONS, Claim, claims, texts

HEAD = """\
<!-- written by tools/generate.py from tests/determinism/advice.toml -->
# Advice on reproducible TensorFlow, tried

This project began with five texts of advice and a page of NVIDIA's. Each of their claims is a row here: what it
says, for which TensorFlow that is right and enough, what is so today, what envlock does about it, and what shows it.
What a CPU can show is shown by `tests/real/advice_program.py`, run with tensorflow-cpu {versions}
(CPython 3.11) by the tests, with the same outcome in each; the rules that are named are tested on every
row's own example, too. What only a GPU can show rests on the sources of the [determinism reference](determinism.md).
"""


def page() -> str:
    """Return the page, a section for each text."""
    versions = f"{', '.join(VERSIONS[:-1])} and {VERSIONS[-1]}"
    return HEAD.format(versions=versions) + "".join(_section(text) for text in texts())


def _section(text: str) -> str:
    found = "".join(_lines(claim) for claim in claims() if claim.text == text)
    return f"\n## {text}: {texts()[text]}\n{found}"


def _lines(claim: Claim) -> str:
    holds = ", ".join("every version" if each == "*" else f"`{each}`" for each in claim.holds) or "no version"
    return (
        f"\n**{claim.says}**\n\n"
        f"- right and enough for: {holds}\n"
        f"- today: {claim.today}\n"
        f"- envlock: {claim.envlock}\n"
        f"- known from: {_evidence(claim)}\n"
    )


def _evidence(claim: Claim) -> str:
    shown = [f"{name}: *{outcome}*" for name, outcome in claim.shown.items()]
    if claim.source is not None:
        source = claim.source.removeprefix("source:")
        shown.append(f"<{source}>" if source.startswith("https://") else f"`{source}`")
    return "; ".join(shown)
