"""What Python code imports, told without running it: a project's own modules exactly, a library's files quickly."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

from envlock.runtime.errors import UsageError

SIZE_LIMIT = (
    2 * 1024 * 1024
)  # bytes of one file; the parser takes about a hundred times as much memory
FILE_LIMIT = 10_000  # modules of a project

IMPORTERS = ("import_module", "__import__")

_STATEMENT = re.compile(
    rb"\n[ \t]*(?:from[ \t]+([A-Za-z_][\w.]*)[ \t]+import\b[ \t(]*([^\n#]*)|import[ \t]+([A-Za-z_][^\n#;]*))"
)
_CALL = re.compile(
    rb"(?:import_module|__import__|[Ll]azy\w*|find_spec|import_optional\w*)\(\s*([^\n]{0,160})"
)
_CALL_SIGNS = (b"import_module(", b"__import__(", b"azy", b"find_spec(", b"import_optional")
_TEXT = re.compile(rb"[\"']([A-Za-z_][\w.]*)[\"']")
_NAME = re.compile(rb"[A-Za-z_][\w.]*")


def of_library(source: bytes, own: Container[bytes] = ()) -> Iterator[str]:
    """Yield the dotted names that a library's file imports anywhere, `a.b` for `from a import b`.

    Guarded and late imports count, and so do modules that are named as text, as for `importlib.import_module`: a
    library that can use a package does so where it is installed. Text that only looks like an import counts, too.
    Left out is what begins with a name of `own`, the library's top modules.
    """
    for module, names, plain in _STATEMENT.findall(b"\n" + source):
        if module.partition(b".")[0] in own:
            continue
        words = [
            found[0]
            for part in (names or plain).split(b",")
            if (found := _NAME.match(part.strip()))
        ]
        if module:
            words = [module + b"." + word for word in words] or [module]
        yield from (word.decode("ascii", "replace") for word in words)
    if any(sign in source for sign in _CALL_SIGNS):
        for arguments in _CALL.findall(source):
            yield from (text.decode("ascii", "replace") for text in _TEXT.findall(arguments))


def of_project(entry: Sequence[str], folder: Path) -> dict[str, str]:
    """Return the dotted names that entry points import from outside their project, each with a file that does so.

    The project's own modules are followed. An entry point is a file relative to the project's folder, or a module of it
    (`pkg.train`).

    Raises:
        UsageError: an entry point does not exist, or a file cannot be read or is not Python.
    """
    outside: dict[str, str] = {}
    for each in entry:
        file = entry_file(each, folder)
        beside = (
            [file.parent] if file == folder / each else []
        )  # where Python looks for a script's modules
        for name, importer in _followed(file, [*beside, folder, folder / "src"]).items():
            outside.setdefault(name, Path(os.path.relpath(importer, folder)).as_posix())
    return outside


def entry_file(entry: str, folder: Path) -> Path:
    """Return the file of an entry point.

    Raises:
        UsageError: the project has none of that name.
    """
    file = folder / entry
    if file.is_file() and Path(os.path.normpath(file)).is_relative_to(folder):
        return file
    for root in (folder, folder / "src"):
        for found in _modules(entry, (root,)):
            main = found.parent / "__main__.py" if found.stem == "__init__" else found
            if _dotted(found, root) == entry:
                return main if main.is_file() else found
    hint = "name a file of the project (`train.py`) or a module (`pkg.train`)"
    raise UsageError(f"no entry point `{entry}` in {folder}", hint=hint)


def _dotted(file: Path, root: Path) -> str:
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _followed(script: Path, roots: Sequence[Path]) -> dict[str, Path]:
    outside: dict[str, Path] = {}
    seen, pending = {script}, [script, *_parents(script, roots)]
    while pending:
        file = pending.pop()
        seen.add(file)
        if len(seen) > FILE_LIMIT:
            raise UsageError(
                f"there are more than {FILE_LIMIT} modules", hint="name smaller entry points"
            )
        for start, name in _imports(file):
            own = list(_modules(name, roots if start is None else (start,)))
            pending += [each for each in own if each not in seen]
            if not own and start is None:
                outside.setdefault(name, file)
    return outside


def _parents(file: Path, roots: Sequence[Path]) -> list[Path]:
    """Return the packages around a module, which are imported with it."""
    inside = [
        folder for folder in file.parents if any(folder.is_relative_to(root) for root in roots)
    ]
    return [folder / "__init__.py" for folder in inside if (folder / "__init__.py").is_file()]


def _modules(name: str, roots: Sequence[Path]) -> Iterator[Path]:
    """Yield the project's files that importing a dotted name runs, those of its packages first."""
    parts = name.split(".")
    for root in roots:
        found = [
            file
            for end in range(1, len(parts) + 1)
            for file in _candidates(root.joinpath(*parts[:end]))
        ]
        if found:
            yield from found
            return


def _candidates(path: Path) -> list[Path]:
    files = (path / "__init__.py", path.parent / f"{path.name}.py")
    return [file for file in files if file.is_file()][:1]


def _imports(file: Path) -> Iterator[tuple[Path | None, str]]:
    """Yield what a file imports: the folder that a relative name starts from, else None, and the dotted name."""
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Import):
            yield from ((None, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = file.parents[node.level - 1] if 0 < node.level <= len(file.parents) else None
            for alias in node.names:
                words = [node.module or "", "" if alias.name == "*" else alias.name]
                yield start, ".".join(filter(None, words))
        elif isinstance(node, ast.Call):
            yield from ((None, name) for name in _by_text(node))


def _by_text(node: ast.Call) -> Iterator[str]:
    called = (
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    )
    first = node.args[0] if node.args else None
    if called in IMPORTERS and isinstance(first, ast.Constant) and isinstance(first.value, str):
        yield from [first.value] if not first.value.startswith(".") else []


def _tree(file: Path) -> ast.Module:
    try:
        with file.open("rb") as stream:
            data = stream.read(SIZE_LIMIT + 1)
        if len(data) > SIZE_LIMIT:
            raise UsageError(
                f"cannot read {file}: it is larger than 2 MB", hint="name another entry point"
            )
        return ast.parse(data, str(file))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        hint = "name the Python files or modules that a run starts with"
        raise UsageError(f"cannot read {file}: it is not Python: {error}", hint=hint) from None
