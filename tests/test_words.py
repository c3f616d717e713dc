"""The words of docs/contributing/style.md: each test lists what breaks a rule in help, messages, tables or prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import tomllib
import typer

from envlock.cli import COMMANDS, app

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "envlock"
SUMMARY = 90
"""Rule 2: the most characters of a command's first line."""

UNWANTED = {
    "rule 19: a literal translation": re.compile(
        r"\bis (?-i:none)\b|\b(?:is|are|was|be) (?:un)?told\b|\bof it\b|\bbehind\b|\bso many\b|\bwhat is there\b"
        r"|\b(?:have|has|had) got\b|\bbut for\b|\blets? (?:\w+ )?through\b|\bc[oa]mes? to an end\b|\bmend(?:s|ed)?\b"
        r"|\bstrange(?:rs|ly)?\b|\buntold\b|\bin the place of\b|\banew\b|(?<!there )(?<!answer )\bis no (?!longer\b)"
        r"|\bnobody\b"
        r"|\b(?:passes|passed|pass) over\b|\bas the lock has\b|\bthe lock\b",
        re.IGNORECASE,
    ),
    "rule 20: an order": re.compile(r"\bshall\b|\bplease (?!report\b)", re.IGNORECASE),
    "rule 21: a contraction": re.compile(
        r"\b\w+n't\b|\b(?:it|that|there|here|what|who|let)'s\b|\b(?:we|you|they|I)'\w+\b", re.IGNORECASE
    ),
    "rule 25: an exclamation mark": re.compile(r"\w!(?:\s|$)"),
}

ANY = re.compile("|".join(f"(?:{pattern.pattern})" for pattern in UNWANTED.values()), re.IGNORECASE)
"""All of them: most texts have none, and one search is quicker than four."""

PLANTED = {
    "rule 19: a literal translation": "the file is none of the lock's, and what is there was told before",
    "rule 20: an order": "the image shall be built again",
    "rule 21: a contraction": "the file doesn't match",
    "rule 25: an exclamation mark": "the file does not match!",
}

TOKEN = re.compile(
    r'#[^\n]*|"""(?:\\.|[^\\])*?"""|'
    r"""(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""",
    re.DOTALL,
)
"""A comment, a docstring or a string; to parse all modules would take a second."""

GAP = re.compile(r"(?:\s|#[^\n]*\n)*f?")
"""What may stand between strings that are one."""

NO_PROSE = re.compile(r"`[^`]*`|https?://\S+|\w*_\w+(?:\.\w+)*")
"""What is no sentence in a docstring, a comment or a page: code, addresses, names of values."""

FENCED = re.compile(r"^```.*?^```$|<!--.*?-->", re.DOTALL | re.MULTILINE)

CODE = ("envlock", "tools", "benchmarks")
"""The folders whose docstrings and comments are read."""

NOT_READ = ("style.md",)
"""The page that names the unwanted words."""

PLACEHOLDER = re.compile(r"\{[^{}]*\}")
HINT = re.compile(r"""\bhint\s*=\s*\(?\s*f?["'](?P<one>[^"]*)["'](?:\s+if [^"\n]* else f?"(?P<other>[^"]*)")?""")

TEXTS = frozenset({"component", "does", "fix", "message", "remarks", "title", "why"})
"""The keys of the tables whose values people read."""


def offenders(texts: dict[str, str]) -> dict[str, list[str]]:
    """Return for each rule that is broken the places and what stands there."""
    found = {
        rule: [f"{place}: {pattern.findall(text)} in {text!r}" for place, text in texts.items() if pattern.search(text)]
        for rule, pattern in UNWANTED.items()
    }
    return {rule: places for rule, places in found.items() if places}


def commands() -> Iterator[tuple[str, Any]]:
    """Yield every command that has no commands of its own, with its name."""

    def below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        inner: dict[str, Any] = getattr(command, "commands", {})
        if not inner:
            yield name, command
        for key, each in inner.items():
            yield from below(f"{name} {key}", each)

    for name in COMMANDS:
        yield from below(name, typer.main.get_command(import_module(f"envlock.cli.{name}").app))


@cache
def helps() -> dict[str, str]:
    """Return the help text of every command and of every option."""
    found = {"envlock": app.info.help or ""}
    for name, command in commands():
        found[name] = command.help or ""
        found.update({f"{name} {param.name}": getattr(param, "help", None) or "" for param in command.params})
    return found


def sentences(code: str) -> Iterator[tuple[int, str]]:
    """Yield every string of a module with its line, neighbours joined; comments and docstrings are left out."""
    number = end = start = 0
    text = None
    for token in TOKEN.finditer(code):
        if token["text"] is None:
            continue
        joined = text is not None and GAP.fullmatch(code, end, token.start()) is not None
        if text is not None and not joined:
            yield number, PLACEHOLDER.sub("{}", text)
        if not joined:
            number += code.count("\n", start, token.start())
            start, text = token.start(), ""
        text, end = f"{text}{token['text'][1:-1]}", token.end()
    if text is not None:
        yield number, PLACEHOLDER.sub("{}", text)


def remarks(code: str) -> Iterator[tuple[int, str]]:
    """Yield every docstring of a module, and every comment with the comments on the lines below it, with its line."""
    number = start = end = 0
    text = ""
    for token in TOKEN.finditer(code):
        if token["text"] is not None:
            continue
        is_joined = text[:1] == "#" == token[0][0] and code[end : token.start()].isspace()
        if text and not is_joined:
            yield number, " ".join(text.split())
        if is_joined:
            text += token[0][1:]
        else:
            number += code.count("\n", start, token.start())
            start, text = token.start(), token[0]
        end = token.end()
    if text:
        yield number, " ".join(text.split())


def paragraphs() -> Iterator[tuple[str, str]]:
    """Yield each paragraph of the pages for users and contributors, with its page and number."""
    files = [
        ROOT / "README.md",
        ROOT / "SECURITY.md",
        *(ROOT / ".github").rglob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
    ]
    for file in sorted(files):
        if file.name not in NOT_READ:
            text = FENCED.sub("", file.read_text(encoding="utf-8"))
            for number, paragraph in enumerate(text.split("\n\n"), 1):
                yield f"{file.relative_to(ROOT)}, paragraph {number}", " ".join(paragraph.split())


def select_prose(texts: Iterator[tuple[str, str]]) -> dict[str, str]:
    """Return the texts with an unwanted word, without code: to remove that from all of them takes longer."""
    return {place: NO_PROSE.sub("", text) for place, text in texts if ANY.search(text)}


@cache
def sources() -> dict[str, str]:
    """Return the modules of the package by their names."""
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in sorted(PACKAGE.rglob("*.py"))}


def table_texts(place: str, value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts of a table that people read."""
    if isinstance(value, str):
        if key in TEXTS:
            yield place, value
        return
    pairs = (
        value.items() if isinstance(value, dict) else ((key, each) for each in value) if isinstance(value, list) else ()
    )
    for number, (name, each) in enumerate(pairs):
        yield from table_texts(f"{place}/{name}{number}", each, name)


def test_every_rule_catches_a_planted_sentence() -> None:
    assert {rule: set(offenders({"planted": text})) for rule, text in PLANTED.items()} == {
        rule: {rule} for rule in UNWANTED
    }
    code = '"""Of it."""\nraise UsageError(\n    f"{a} is "  # of it\n    "none!", hint="Mend it")\n'
    assert list(sentences(code)) == [(2, "{} is none!"), (3, "Mend it")]
    assert [hint["one"] for hint in HINT.finditer(code)] == ["Mend it"]
    code = 'def f():\n    """None of\n    it."""\n    # It is\n    # none.\n    a = "of it"  # behind\n'
    assert list(remarks(code)) == [(1, '"""None of it."""'), (3, "# It is none."), (5, "# behind")]


def test_help_follows_the_style() -> None:
    assert offenders(helps()) == {}


def test_a_summary_is_one_short_sentence_and_no_question() -> None:
    summaries = {name: (command.help or "").partition("\n")[0] for name, command in commands()}
    assert [
        f"{name}: {text}" for name, text in summaries.items() if len(text) > SUMMARY or not text.endswith(".")
    ] == []
    assert [f"{name}: {text}" for name, text in summaries.items() if "?" in text or "please" in text.lower()] == []


def test_every_command_ends_with_examples() -> None:
    assert [name for name, command in commands() if "\nExamples:\n" not in (command.help or "")] == []


def test_values_have_names_in_capitals_or_are_choices() -> None:
    unnamed = {
        f"{name} {param.name}": param.metavar
        for name, command in commands()
        for param in command.params
        if not getattr(param, "is_flag", False)
        and not re.match(r"^([A-Z][^<>{}]*|-- CMD|[a-z|A-Z0-9-]+)$", param.metavar or "")
    }
    assert unnamed == {}


def test_messages_follow_the_style() -> None:
    texts = {
        f"{name}:{line + 1} {text[:20]}": text
        for name, code in sources().items()
        for line, text in sentences(code)
        if " " in text
    }
    assert len(texts) > 1500
    assert offenders(texts) == {}


def test_docstrings_and_comments_follow_the_style() -> None:
    files = [file for folder in CODE for file in sorted((ROOT / folder).rglob("*.py"))]
    texts = [
        (f"{file.relative_to(ROOT)}:{line + 1}", text)
        for file in files
        for line, text in remarks(file.read_text(encoding="utf-8"))
    ]
    assert len(texts) > 5000
    assert offenders(select_prose(iter(texts))) == {}


def test_pages_follow_the_style() -> None:
    texts = list(paragraphs())
    assert len(texts) > 800
    assert offenders(select_prose(iter(texts))) == {}


def test_a_hint_begins_in_lower_case() -> None:
    found = [(name, hint) for name, code in sources().items() for hint in HINT.finditer(code)]
    assert len(found) > 100
    texts = [(name, text) for name, hint in found for text in hint.groups() if text is not None]
    assert [f"{name}: {text}" for name, text in texts if not re.match(r"[a-z`{]", text)] == []


def test_tables_follow_the_style() -> None:
    texts = {
        place: text
        for file in sorted((PACKAGE / "data").glob("*.toml"))
        for place, text in table_texts(file.name, tomllib.loads(file.read_text(encoding="utf-8")))
    }
    assert len(texts) > 400
    assert offenders(texts) == {}
