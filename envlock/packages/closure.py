"""The distributions that a project's entry points can import, found without running any code.

They are found from import statements, also those that are guarded or inside functions, from module
names in strings, and from requirements. Names that a program computes at run time, and imports of
compiled modules, are not found. The imports of development tools and installers, which the policies
allow to differ, are not followed, nor are those of packages that the policies allow to be added.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from importlib.metadata import Distribution
from pathlib import Path

from packaging.utils import canonicalize_name

from envlock.packages.contents import read_contents
from envlock.packages.imports import find_project_imports
from envlock.packages.installation import Installation, collect_distributions, iter_requirements
from envlock.runtime.collectors.tensorflow import DISTRIBUTIONS
from envlock.runtime.distributions import OWN_NAME
from envlock.runtime.policies import Policy

AT_START = ("sitecustomize.py", "usercustomize.py")
PLUGINS = ("tensorflow-plugins/", "jax_plugins/")
"""Folders whose modules TensorFlow and JAX load without an import statement.

Sources: https://github.com/tensorflow/tensorflow/blob/v2.21.0/tensorflow/python/framework/load_library.py
https://docs.jax.dev/en/latest/jep/15856-jex.html
"""


def find_imported_distributions(
    entry: Sequence[str],
    folder: Path,
    environment: Installation,
    locked: Collection[str] | None = None,
) -> dict[str, str]:
    """Return the distributions that entry points of the project in `folder` can import.

    The keys are normalised names; each value says how the distribution is reached. The requirements
    of TensorFlow, with its extras, are included even if they are not installed: a new one would
    count.

    Args:
        entry: the entry points, relative to `folder`.
        folder: that of the project.
        environment: where their imports are found.
        locked: the distributions of a lockfile. One that it lacks, and that may be added, makes nothing
            count that only it reaches.

    Raises:
        UsageError: an entry point does not exist, or a file of the project is not Python.
    """
    search = _Search(environment, locked)
    for name, file in find_project_imports(entry, folder).items():
        search.add_module(name, file, by_project=True)
    search.add_loaded_at_start()
    return search.follow()


@cache
def is_held(name: str) -> bool:
    """Return whether the strictest policy compares a distribution of this name."""
    return bool(Policy().row(f"packages.{name}.version")["rule"] != "ignore")


@cache
def may_be_added(name: str) -> bool:
    """Return whether the strictest policy accepts a distribution of this name that was not locked."""
    return bool(Policy().row(f"packages.{name}")["rule"] == "superset")


class _Search:
    """The distributions that were found so far, each with the first way by which it was found."""

    def __init__(self, environment: Installation, locked: Collection[str] | None) -> None:
        self.markers = environment.markers
        self.installed = collect_distributions(environment)
        self.installed.pop(OWN_NAME, None)
        self.contents = {name: read_contents(found) for name, found in self.installed.items()}
        new = () if locked is None else self.installed.keys() - set(locked)
        self.added = {name for name in new if may_be_added(name)}
        self.modules = {name: files.list_modules(name) for name, files in self.contents.items()}
        self.owners: dict[str, list[str]] = {}
        self.namespaces: dict[str, set[str]] = {}
        for name, modules in self.modules.items():
            self._index_modules(name, modules)
        self.known: set[str] = set()  # imported names, so that each is resolved once
        self.found: dict[str, str] = {}
        self.extras: set[tuple[str, str]] = set()
        self.pending: deque[tuple[str, str]] = deque()

    def _index_modules(self, name: str, modules: Iterable[str]) -> None:
        for module in modules:
            self.owners.setdefault(module, []).append(name)
            parts = module.split(".")
            for end in range(1, len(parts)):
                self.namespaces.setdefault(".".join(parts[:end]), set()).add(name)

    def add_loaded_at_start(self) -> None:
        """Add the distributions that are loaded without an import."""
        for name, files in sorted(self.contents.items()):
            if any(_is_loaded_at_start(file) for file in files.files or ()):
                self._add(name, "loaded at start")

    def add_module(self, name: str, importer: str, *, by_project: bool = False) -> None:
        """Add the owners of an imported module; for a namespace package, the owners of everything
        below it.
        """
        for owner in sorted(self._find_owners(name)):
            self._add(owner, f"imported by {importer}", by_project=by_project)

    def _find_owners(self, name: str) -> Iterable[str]:
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            prefix = ".".join(parts[:end])
            if prefix in self.owners:
                return self.owners[prefix]
        return self.namespaces.get(name, ())

    def _add(self, name: str, how: str, extra: str = "", *, by_project: bool = False) -> None:
        if (name, extra) in self.extras or not (by_project or is_held(name)):
            return
        self.extras.add((name, extra))
        self.found.setdefault(name, how)
        if by_project or name not in self.added:
            self.pending.append((name, extra))

    def follow(self) -> dict[str, str]:
        """Follow requirements and imports until nothing new is found, and return everything found."""
        # Breadth first, so that each distribution is found by a shortest way.
        while self.pending:
            name, extra = self.pending.popleft()
            distribution = self.installed.get(name)
            if distribution is None:
                continue
            self._follow_requirements(name, extra, distribution)
            if not extra:
                self._follow_imports(name)
        return {name: how for name, how in sorted(self.found.items()) if is_held(name)}

    def _follow_requirements(self, name: str, extra: str, distribution: Distribution) -> None:
        extras = [extra]
        if not extra and name in DISTRIBUTIONS:
            # TensorFlow's extras count even if they were not requested: its loader uses CUDA from
            # wheels, whoever installed them.
            extras += distribution.metadata.get_all("Provides-Extra") or ()
        for requirement, _ in iter_requirements(distribution, self.markers, extras):
            wanted = canonicalize_name(requirement.name)
            if wanted in self.installed or name in DISTRIBUTIONS:
                for wanted_extra in ("", *sorted(requirement.extras)):
                    self._add(wanted, f"required by {name}", wanted_extra)

    def _follow_imports(self, name: str) -> None:
        for module in self.contents[name].find_imports(self.modules[name]):
            if module not in self.known:
                self.known.add(module)
                self.add_module(module, name)


def _is_loaded_at_start(file: str) -> bool:
    if file in AT_START or file.startswith(PLUGINS):
        return True
    # A .pth file that only defines a namespace imports nothing of the distribution's own.
    return "/" not in file and file.endswith(".pth") and not file.endswith("-nspkg.pth")
