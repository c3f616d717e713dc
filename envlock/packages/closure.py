"""The distributions that a project's entry points can import: by files, requirements and imports, without running any.

Told are statements (guarded and late ones, too) and modules named as text; what a program makes up at run time, or a
compiled module imports, is not. Development tools and installers that a policy lets differ are not followed further.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name

from envlock.packages.imports import FILE_LIMIT, of_library, of_project
from envlock.packages.installation import Installation, by_name, record_of, required
from envlock.runtime.collectors.tensorflow import DISTRIBUTIONS
from envlock.runtime.distributions import OWN_NAME
from envlock.runtime.errors import FactError
from envlock.runtime.policy import Policy

AT_START = ("sitecustomize.py", "usercustomize.py")
PLUGINS = ("tensorflow-plugins/", "jax_plugins/")
"""Folders whose modules TensorFlow and JAX load without an import statement.

Sources: https://github.com/tensorflow/tensorflow/blob/v2.21.0/tensorflow/python/framework/load_library.py
https://docs.jax.dev/en/latest/jep/15856-jex.html
"""
SKIPPED = ("/tests/", "_test.py", "/conftest.py")
"""Files of a library that only its own tests import."""


def closure(entry: Sequence[str], folder: Path, place: Installation) -> list[str]:
    """Return the normalised names of the distributions that entry points of the project in `folder` can import.

    What TensorFlow requires is among them where it is not installed, too, with its extras: a new one counts.

    Raises:
        UsageError: an entry point does not exist, or a file of the project is not Python.
    """
    search = _Search(place)
    for name in of_project(entry, folder):
        search.import_(name, by_project=True)
    search.start()
    return search.finish()


class _Search:
    """Distributions that were found so far, and those that are still to be looked at."""

    def __init__(self, place: Installation) -> None:
        self.place = place
        self.installed = {name: found for name, found in by_name(place).items() if name != OWN_NAME}
        self.files = {name: _files(found) for name, found in self.installed.items()}
        self.checkouts = {name: checkout for name, found in self.installed.items() if (checkout := _checkout(found))}
        self.owners: dict[str, set[str]] = {}
        for name, files in self.files.items():
            source = self.checkouts[name][1] if name in self.checkouts else []
            for module in _provided(name, None if files is None else [*files, *source]):
                self.owners.setdefault(module, set()).add(name)
        self.policy = Policy()
        self.found: dict[tuple[str, str], None] = {}
        self.pending: list[tuple[str, str]] = []

    def start(self) -> None:
        """Add what is loaded without an import."""
        for name, files in self.files.items():
            if any(_is_at_start(file) or file.startswith(PLUGINS) for file in files or ()):
                self._add(name)

    def import_(self, name: str, *, by_project: bool = False) -> None:
        """Add the owners of an imported module; every owner of a namespace where no more of it is named."""
        parts = name.split(".")
        prefixes = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
        owners = next((self.owners[prefix] for prefix in prefixes if prefix in self.owners), None)
        if owners is None:
            inside = f"{name}."
            owners = {owner for module, those in self.owners.items() if module.startswith(inside) for owner in those}
        for owner in owners:
            self._add(owner, by_project=by_project)

    def _add(self, name: str, extra: str = "", *, by_project: bool = False) -> None:
        if (name, extra) in self.found or not (by_project or self._is_held(name)):
            return
        self.found[name, extra] = None
        self.pending.append((name, extra))

    def _is_held(self, name: str) -> bool:
        """Return whether the strictest policy holds a package, and not lets it through by its name."""
        return bool(self.policy.row(f"packages.{name}.version")["rule"] != "ignore")

    def finish(self) -> list[str]:
        """Follow all that is pending, and return all names."""
        known: set[str] = set()  # imported names, so that each is looked up once
        while self.pending:
            name, extra = self.pending.pop()
            found = self.installed.get(name)
            if found is None:
                continue
            extras = [extra] if extra else ["", *_extras(name, found)]
            for requirement, _ in required(found, self.place.markers, extras):
                wanted = canonicalize_name(requirement.name)
                if wanted in self.installed or name in DISTRIBUTIONS:
                    self._add(wanted)
                    for each in requirement.extras:
                        self._add(wanted, each)
            if not extra:
                new = set(self._imported(name, found)) - known
                known |= new
                for module in new:
                    self.import_(module)
        return sorted({name for name, _ in self.found if self._is_held(name)})

    def _imported(self, name: str, found: Distribution) -> Iterator[str]:
        root, source = self.checkouts.get(name, (None, []))
        places = [root / file for file in source] if root is not None else []
        places += [Path(str(found.locate_file(file))) for file in self.files[name] or () if _is_source(file)]
        for source_file in places:
            yield from of_library(_read(source_file))


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except (OSError, ValueError):  # gone, or no path
        return b""


def _is_source(file: str) -> bool:
    return file.endswith(".py") and not any(sign in f"/{file}" for sign in SKIPPED)


def _extras(name: str, found: Distribution) -> list[str]:
    """Return the extras that count unasked: TensorFlow's, as its loader takes CUDA from wheels whoever wanted them."""
    return list(found.metadata.get_all("Provides-Extra") or ()) if name in DISTRIBUTIONS else []


def _files(found: Distribution) -> list[str] | None:
    """Return a distribution's files relative to its `site-packages`; None where nothing lists them."""
    try:
        record = record_of(found)
    except FactError:
        return None
    if record is not None:
        return [_path(line) for line in record.splitlines() if line]
    listed = found.files
    return None if listed is None else [file.as_posix() for file in listed]


def _checkout(found: Distribution) -> tuple[Path, list[str]] | None:
    """Return the folder that an editable distribution is imported from, and its Python files; else None."""
    try:
        origin = json.loads(found.read_text("direct_url.json") or "{}")
        url = urlsplit(origin["url"])
        if url.scheme != "file" or not origin["dir_info"]["editable"]:
            return None
    except (ValueError, KeyError, TypeError):
        return None
    folder = Path(unquote(url.path))
    root = folder / "src" if (folder / "src").is_dir() else folder
    tops = [file for file in root.glob("*.py") if file.stem != "setup"]
    inside = (file for package in root.glob("*/__init__.py") for file in package.parent.rglob("*.py"))
    return root, [file.relative_to(root).as_posix() for file in [*tops, *islice(inside, FILE_LIMIT)]]


def _path(line: str) -> str:
    return line[1:].partition('"')[0] if line.startswith('"') else line.partition(",")[0]


def _is_at_start(file: str) -> bool:
    """Return whether Python runs a file at every start; those that only make a namespace import nothing of theirs."""
    return file in AT_START or ("/" not in file and file.endswith(".pth") and not file.endswith("-nspkg.pth"))


def _provided(name: str, files: list[str] | None) -> set[str]:
    """Return the modules by which a distribution is imported; below a namespace, those that it puts there."""
    if files is None:
        return {name.replace("-", "_")}
    packages = {file.rpartition("/")[0] for file in files if file.rpartition("/")[2].startswith("__init__.")}
    found: set[str] = set()
    for file in files:
        if not file.endswith((".py", ".so", ".pyd", ".pyc")) or file.startswith(("..", "/")) or ".dist-info/" in file:
            continue
        parts = file.split("/")
        if parts[0] in packages:
            found.add(parts[0])
            continue
        folders = ["/".join(parts[:end]) for end in range(1, len(parts))]
        inner = next((folder for folder in folders if folder in packages), None)
        module = inner or "/".join([*parts[:-1], parts[-1].partition(".")[0]])
        if "__pycache__" not in module:
            found.add(module.replace("/", "."))
    return found
