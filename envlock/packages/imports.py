"""The imports of Python code, found without running it.

The modules of a project are parsed; the files of libraries, of which there are tens of thousands,
are searched by regular expressions.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

from envlock.runtime.errors import UsageError

SIZE_LIMIT = 2 * 1024 * 1024
"""Bytes of one file; the parser takes about a hundred times as much memory."""
FILE_LIMIT = 10_000
"""Modules of a project."""

IMPORTERS = ("import_module", "__import__")

_STATEMENT = re.compile(
    rb"\n[ \t]*(?:from[ \t]+([A-Za-z_][\w.]*)[ \t]+import\b[ \t(]*([^\n#]*)|import[ \t]+([A-Za-z_][^\n#;]*))"
)
# Beside Python's own functions those of libraries that take a name as text: TensorFlow's `LazyLoader`,
# pandas' `import_optional_dependency`. 160 characters hold a name and the arguments before it.
_CALL = re.compile(
    rb"(?:import_module|__import__|[Ll]azy\w*|find_spec|import_optional\w*)\(\s*([^\n]{0,160})"
)
_CALL_SIGNS = (b"import_module(", b"__import__(", b"azy", b"find_spec(", b"import_optional")
_TEXT = re.compile(rb"[\"']([A-Za-z_][\w.]*)[\"']")
_NAME = re.compile(rb"[A-Za-z_][\w.]*")


def find_library_imports(source: bytes, own: Container[bytes] = ()) -> Iterator[str]:
    """Yield the dotted names that a file of a library imports anywhere: `a.b` for `from a import
    b`.

    Names that begin with a name in `own`, the library's top-level modules, are left out.
    """
    # Guarded and late imports count, and so do module names in strings, as for
    # `importlib.import_module`: a library that can use a package uses it if it is installed. Text
    # that only looks like an import counts, too.
    for module, names, plain in _STATEMENT.findall(b"\n" + source):
        if module.partition(b".")[0] in own:
            continue
        words: list[bytes] = []
        for part in (names or plain).split(b","):
            name = _NAME.match(part.strip())
            if name is not None:
                words.append(name[0])
        if module:
            words = [module + b"." + word for word in words] or [module]
        for word in words:
            yield word.decode("ascii", "replace")
    # The expression for calls is slow, and most files contain no such call.
    if any(sign in source for sign in _CALL_SIGNS):
        for arguments in _CALL.findall(source):
            for text in _TEXT.findall(arguments):
                yield text.decode("ascii", "replace")


def find_project_imports(entry: Sequence[str], folder: Path) -> dict[str, str]:
    """Return the dotted names that entry points import from outside of their project.

    Each value is the importing file, relative to the project's folder. Imports of the project's own
    modules are followed. An entry point is such a file (`train.py`), or a module of the project
    (`pkg.train`).

    Raises:
        UsageError: an entry point does not exist, or a file cannot be read or is not Python.
    """
    outside: dict[str, str] = {}
    for name in entry:
        file = find_entry_file(name, folder)
        roots = [folder, folder / "src"]
        if file == folder / name:
            roots.insert(0, file.parent)  # where Python searches for the modules of a script
        for module, importer in _follow_imports(file, roots).items():
            outside.setdefault(module, Path(os.path.relpath(importer, folder)).as_posix())
    return outside


def find_entry_file(entry: str, folder: Path) -> Path:
    """Return the file of an entry point.

    Raises:
        UsageError: the project has no such entry point.
    """
    file = folder / entry
    if file.is_file() and Path(os.path.normpath(file)).is_relative_to(folder):
        return file
    for root in (folder, folder / "src"):
        for module in _find_files(entry, (root,)):
            if _get_dotted_name(module, root) != entry:
                continue
            main = module.parent / "__main__.py"
            if module.stem == "__init__" and main.is_file():
                return main
            return module
    hint = "name a file of the project (`train.py`) or a module (`pkg.train`)"
    raise UsageError(f"no entry point `{entry}` in {folder}", hint=hint)


def _get_dotted_name(file: Path, root: Path) -> str:
    parts = file.relative_to(root).with_suffix("").parts
    if parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(parts)


def _follow_imports(script: Path, roots: Sequence[Path]) -> dict[str, Path]:
    """Return the names that a script, and the modules of the project that it reaches, import from
    outside.
    """
    outside: dict[str, Path] = {}
    known = {script}
    pending = [script, *_find_parents(script, roots)]
    while pending:
        file = pending.pop()
        known.add(file)
        if len(known) > FILE_LIMIT:
            raise UsageError(
                f"there are more than {FILE_LIMIT} modules", hint="name smaller entry points"
            )
        for start, name in _find_imports(file):
            if start is None:
                own = _find_files(name, roots)
            else:
                own = _find_files(name, (start,))
            pending += [module for module in own if module not in known]
            if not own and start is None:
                outside.setdefault(name, file)
    return outside


def _find_parents(file: Path, roots: Sequence[Path]) -> list[Path]:
    """Return the packages that contain a module and are imported with it."""
    parents = []
    for folder in file.parents:
        package = folder / "__init__.py"
        if any(folder.is_relative_to(root) for root in roots) and package.is_file():
            parents.append(package)
    return parents


def _find_files(name: str, roots: Sequence[Path]) -> list[Path]:
    """Return the project's files that run when a dotted name is imported, those of its packages
    first.
    """
    parts = name.split(".")
    for root in roots:
        files = []
        for end in range(1, len(parts) + 1):
            file = _find_file(root.joinpath(*parts[:end]))
            if file is not None:
                files.append(file)
        if files:
            return files
    return []


def _find_file(path: Path) -> Path | None:
    """Return the file of a package or a module; as in Python, the package goes first."""
    for file in (path / "__init__.py", path.parent / f"{path.name}.py"):
        if file.is_file():
            return file
    return None


def _find_imports(file: Path) -> Iterator[tuple[Path | None, str]]:
    """Yield the dotted names that a file imports, each with the folder where a relative import
    starts.

    The folder is None for an absolute name.
    """
    for node in ast.walk(_parse(file)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield None, alias.name
        elif isinstance(node, ast.ImportFrom):
            start = file.parents[node.level - 1] if 0 < node.level <= len(file.parents) else None
            for alias in node.names:
                words = [node.module or ""]
                if alias.name != "*":
                    words.append(alias.name)
                yield start, ".".join(filter(None, words))
        elif isinstance(node, ast.Call):
            name = _get_name_in_call(node)
            if name is not None:
                yield None, name


def _get_name_in_call(node: ast.Call) -> str | None:
    """Return the absolute name in the string argument of a call that imports it."""
    function = (
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    )
    if function not in IMPORTERS or not node.args:
        return None
    name = node.args[0]
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        return None
    if name.value.startswith("."):
        return None
    return name.value


def _parse(file: Path) -> ast.Module:
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
