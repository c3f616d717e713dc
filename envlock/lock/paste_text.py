"""What a pasted text states, as text: a line for each fact, with the line that it was read from."""

from __future__ import annotations

from collections.abc import Iterable

from envlock.runtime.report import clean, count, show


def render_paste(
    title: str,
    facts: Iterable[tuple[str, object, int]],
    unstated: str,
    *,
    disputed: Iterable[str],
    unversioned: Iterable[str],
) -> Iterable[tuple[str, str]]:
    """Yield (style, line) for the facts of a paste: path, value and line of each."""
    listed = list(facts)
    yield "title", f"{title}: {count(len(listed), 'fact')}; not in it: {unstated}"
    for path, value, line in listed:
        yield "plain", f"  {clean(path):<32} {show(value)} (line {line})"
    for name in unversioned:
        yield "unknown", f"  {clean(name):<32} no version"
    for path in disputed:
        yield "unknown", f"  {clean(path):<32} two values"
