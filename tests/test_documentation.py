"""What the pages say can be typed, imported, opened and followed."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from typer.main import get_command

import envlock
from envlock.cli import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob(".github/*.md"),
    *ROOT.glob("benchmarks/*.md"),
    *ROOT.glob("tests/**/README.md"),
]
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FOLDERS = ("benchmarks", "docs", "envlock", "examples", "templates", "tests", "tools")
FILES = ("envlock.lock", "envlock.json")
"""Names of files that read like those of attributes."""


def test_what_the_pages_say_is_there() -> None:
    """Links and anchors lead somewhere, paths exist, Python compiles, names, arguments and options are there."""
    found = [f"{page.relative_to(ROOT)}: {offence}" for page in PAGES for offence in offences(page)]
    assert not found, "\n".join(found)


def test_every_attachment_is_described() -> None:
    schema = json.loads((ROOT / "envlock/data/report.schema.json").read_bytes())
    pages = "".join(
        (ROOT / f"docs/reference/{name}.md").read_text() for name in ("formats", "repeat", "diverge", "trace")
    )
    names = schema["$defs"]["attachments"]["properties"]
    assert [name for name in names if f"`{name}`" not in pages] == []


def test_every_variable_of_an_option_is_on_the_page_of_settings() -> None:
    page = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")
    program: Any = get_command(app)
    context = program.make_context("envlock", [], resilient_parsing=True)
    commands = [program.get_command(context, name) for name in program.list_commands(context)]
    variables = {each.envvar for command in commands for each in command.params if each.envvar}
    assert variables
    assert sorted(name for name in variables if f"`{name}`" not in page) == []


def offences(page: Path) -> Iterator[str]:
    """Yield what a page says that is not so."""
    text = page.read_text(encoding="utf-8")
    for language, block in FENCE.findall(text):
        if language == "python":
            yield from _python(block)
        elif language in ("console", "sh"):
            yield from _commands(block)
    prose = FENCE.sub("", text)
    indented = "\n".join(re.findall(r"^ {4}(.*)$", prose, flags=re.MULTILINE))
    yield from _commands(indented)
    for span in SPAN.findall(prose):
        yield from _span(span)
    for target in LINK.findall(SPAN.sub("", prose)):
        yield from _link(page, target)


def _link(page: Path, target: str) -> Iterator[str]:
    if target.startswith(("https://", "http://", "mailto:")):
        return
    name, _, anchor = target.partition("#")
    file = (page.parent / name).resolve() if name else page
    if not file.exists():
        yield f"the link {target} leads to no file"
    elif re.match(r"L\d+$", anchor):  # tools/generate.py keeps the number
        if int(anchor[1:]) > len(file.read_text(encoding="utf-8").splitlines()):
            yield f"the link {target} leads to no line"
    elif anchor and anchor not in anchors(file):
        yield f"the link {target} leads to no heading"


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return what GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), flags=re.MULTILINE)
    return frozenset(re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings)


def _python(code: str) -> Iterator[str]:
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        yield f"this is no Python ({error}): {code.strip().splitlines()[0]}"
        return
    nodes = list(ast.walk(tree))
    results = {name: kind for node in nodes for name, kind in _result(node)}
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield from _attribute(node.value.id, node.attr, results)
        if isinstance(node, ast.Call):
            yield from _arguments(node)


def _result(node: ast.AST) -> Iterator[tuple[str, type]]:
    """Yield the name that a call's result gets, and its class, where that is one of the public ones."""
    if not (
        isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name)
    ):
        return
    function = _function(node.value)
    kind = "" if function is None else str(inspect.signature(function).return_annotation)
    kind = kind.partition("[")[0]  # `Report[DivergeEvidence]` is a Report
    if kind in envlock.__all__:
        yield node.targets[0].id, getattr(envlock, kind)


def _function(call: ast.Call) -> Any:
    """Return the public function that is called; None where it is another."""
    called = call.func
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "envlock":
        return getattr(envlock, called.attr) if called.attr in envlock.__all__ else None
    return None


def _attribute(owner: str, name: str, results: dict[str, type]) -> Iterator[str]:
    if owner == "envlock" and name not in envlock.__all__:
        yield f"there is no envlock.{name}"
    if owner in results:
        kind = results[owner]
        if not hasattr(kind, name) and f"self.{name} = " not in inspect.getsource(kind):
            yield f"a {kind.__name__} has no {name}"


def _arguments(call: ast.Call) -> Iterator[str]:
    function = _function(call)
    parameters = {} if function is None else inspect.signature(function).parameters
    if function is None or any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return
    for keyword in call.keywords:
        if keyword.arg not in parameters:
            yield f"envlock.{function.__name__} takes no {keyword.arg}"


def _span(span: str) -> Iterator[str]:
    if span.startswith("envlock "):
        yield from _commands(span)
    elif re.match(r"@?envlock\.\w+(\(.*\))?$", span) and span not in FILES:
        yield from _python(f"{span}\ndef _(): ...\n" if span.startswith("@") else span)
    elif re.match(r"envlock(\.\w+){2,}$", span):
        yield from _module(span)
    elif re.match(rf"({'|'.join(FOLDERS)})/[\w.*/-]+(:\w+)?$", span):
        path = span.partition(":")[0]
        if not any(ROOT.glob(path.rstrip("/"))):
            yield f"there is no {path}"


def _module(span: str) -> Iterator[str]:
    module, _, name = span.rpartition(".")
    try:
        importlib.import_module(span)
    except ModuleNotFoundError:
        try:
            getattr(importlib.import_module(module), name)
        except (ModuleNotFoundError, AttributeError):
            yield f"there is no {span}"


def _commands(block: str) -> Iterator[str]:
    """Yield the options and subcommands that do not exist, of the lines that call envlock."""
    for line in block.replace("\\\n", " ").splitlines():
        called = re.match(r"(?:\$ )?(?:\w+=\S* )*envlock(?: (.*))?$", line.strip())
        if called is None:
            continue
        words = shlex.split(called[1] or "", comments=True) if called[1] and "'" not in called[1] else []
        yield from (f"{offence}: {line.strip()}" for offence in find_option_faults(words))


def find_option_faults(words: list[str]) -> Iterator[str]:
    """Yield the commands and options among words after `envlock` that do not exist."""
    command: Any = get_command(app)
    context = command.make_context("envlock", [], resilient_parsing=True)
    while words and hasattr(command, "list_commands"):
        names = command.list_commands(context)
        if words[0] in names:
            command = command.get_command(context, words.pop(0))
        elif "record" in names:  # `envlock diverge SCRIPT`
            command = command.get_command(context, "run")
        elif words[0].startswith("-"):
            break
        elif not words[0].islower():  # a placeholder, or a version
            return
        else:
            yield f"there is no command {words[0]}"
            return
    known = {"--help", "-h"} | {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    for word in words:
        if word == "--" or (command.name == "run" and word == "-m"):  # a command begins, which is not ours
            return
        option = word.partition("=")[0]
        if re.fullmatch(r"--?[a-z][\w-]*", option) and option not in known:
            yield f"there is no option {option}"


def test_users_are_told_what_stays_what_is_sent_and_how_commands_are_completed() -> None:
    installation = (ROOT / "docs/guides/installation.md").read_text(encoding="utf-8")
    assert "envlock sends no telemetry" in installation
    assert "envlock --install-completion" in installation
    assert "## What stays\n" in (ROOT / "docs/reference/formats.md").read_text(encoding="utf-8")
