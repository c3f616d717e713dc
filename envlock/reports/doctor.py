"""What the doctor found, for people: the states that TensorFlow has shown where it was asked, then the findings."""

from __future__ import annotations

from collections.abc import Iterator

from envlock.runtime.report import Report, clean


def lines(report: Report) -> Iterator[tuple[str, str]]:
    """Yield (style, line)."""
    for each in report.attachments.get("states", ()):
        yield "plain", f"{each['what']}: {each['state']} ({clean(each['evidence'])})"
    yield from report.lines()
