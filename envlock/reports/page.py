"""What the HTML pages of reports share: one style, and a head under which a page loads and runs nothing."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from envlock.runtime.report import Report, clean

STYLE = """
:root { color-scheme: light dark; --bad: #c62828; --warn: #b26a00; --ok: #2e7d32; --dim: #777; --line: #8884; }
@media (prefers-color-scheme: dark) { :root { --bad: #ef5350; --warn: #ffb74d; --ok: #81c784; --dim: #aaa; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } h3 { font-size: 1rem; margin-bottom: .3rem; }
pre { border: 1px solid var(--line); border-radius: 6px; padding: .6rem; overflow-x: auto; font-size: 13px; }
.wide { overflow-x: auto; } table { border-collapse: collapse; }
.bad { color: var(--bad); } .ok { color: var(--ok); } .dim { color: var(--dim); }
"""

# A page is passed on: whatever names of a script are in it, it loads and runs nothing.
# https://developer.mozilla.org/en-US/docs/Web/HTTP/Guides/CSP
HEAD = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head><body>
<h1 class="{verdict}">{headline}</h1>
"""


def render_whole_page(
    report: Report, title: str, headline: str, style: str, parts: Iterable[str]
) -> str:
    """Return a page: the headline in the color of the verdict, and its parts."""
    verdict = "ok" if report.match else "bad"
    head = HEAD.format(
        title=escape_text(title),
        style=STYLE + style,
        verdict=verdict,
        headline=escape_text(headline),
    )
    return "".join([head, *parts, "</body></html>\n"])


def escape_text(value: object) -> str:
    """Return a value as text that a browser shows as it is."""
    return escape(clean(str(value)))
