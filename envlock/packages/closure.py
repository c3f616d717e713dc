"""The distributions that a project's entry points can import: by files, requirements and imports, without running any.

Found are statements (guarded and late ones, too) and modules named as text; what a program makes up at run time, or a
compiled module imports, is not. Development tools and installers that a policy lets differ are not followed further.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import cache
from importlib.metadata import Distribution
from pathlib import Path

from packaging.utils import canonicalize_name

from envlock.packages.contents import contents
from envlock.packages.imports import of_project
from envlock.packages.installation import Installation, by_name, required
from envlock.runtime.collectors.tensorflow import DISTRIBUTIONS
from envlock.runtime.distributions import OWN_NAME
from envlock.runtime.policy import Policy

AT_START = ("sitecustomize.py", "usercustomize.py")
PLUGINS = ("tensorflow-plugins/", "jax_plugins/")
"""Folders whose modules TensorFlow and JAX load without an import statement.

Sources: https://github.com/tensorflow/tensorflow/blob/v2.21.0/tensorflow/python/framework/load_library.py
https://docs.jax.dev/en/latest/jep/15856-jex.html
"""


def closure(entry: Sequence[str], folder: Path, place: Installation) -> dict[str, str]:
    """Return the distributions that entry points of the project in `folder` can import: how, by normalised name.

    What TensorFlow requires is among them where it is not installed, too, with its extras: a new one counts.

    Raises:
        UsageError: an entry point does not exist, or a file of the project is not Python.
    """
    search = _Search(place)
    for name, file in of_project(entry, folder).items():
        search.import_(name, file, by_project=True)
    search.start()
    return search.finish()


@cache
def is_held(name: str) -> bool:
    """Return whether the strictest policy holds a distribution, and not lets it differ by its name."""
    return bool(Policy().row(f"packages.{name}.version")["rule"] != "ignore")


class _Search:
    """Distributions that were found so far, those on the shortest way first, and how each was."""

    def __init__(self, place: Installation) -> None:
        self.place = place
        self.installed = {name: found for name, found in by_name(place).items() if name != OWN_NAME}
        self.contents = {name: contents(found) for name, found in self.installed.items()}
        self.modules = {name: brought.modules(name) for name, brought in self.contents.items()}
        self.owners: dict[str, list[str]] = {}
        self.namespaces: dict[str, set[str]] = {}
        for name, modules in self.modules.items():
            for module in modules:
                self.owners.setdefault(module, []).append(name)
                for end in range(1, module.count(".") + 1):
                    self.namespaces.setdefault(".".join(module.split(".")[:end]), set()).add(name)
        self.known: set[str] = set()  # imported names, so that each is looked up once
        self.found: dict[str, str] = {}
        self.extras: set[tuple[str, str]] = set()
        self.pending: deque[tuple[str, str]] = deque()

    def start(self) -> None:
        """Add what is loaded without an import."""
        for name, brought in sorted(self.contents.items()):
            if any(_is_at_start(file) or file.startswith(PLUGINS) for file in brought.files or ()):
                self._add(name, "loaded at start")

    def import_(self, name: str, importer: str, *, by_project: bool = False) -> None:
        """Add the owners of an imported module; every owner of a namespace where no more of it is named."""
        parts = name.split(".")
        prefixes = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
        owners = next((self.owners[prefix] for prefix in prefixes if prefix in self.owners), None)
        for owner in sorted(self.namespaces.get(name, ()) if owners is None else owners):
            self._add(owner, f"imported by {importer}", by_project=by_project)

    def _add(self, name: str, how: str, extra: str = "", *, by_project: bool = False) -> None:
        if (name, extra) in self.extras or not (by_project or is_held(name)):
            return
        self.extras.add((name, extra))
        self.found.setdefault(name, how)
        self.pending.append((name, extra))

    def finish(self) -> dict[str, str]:
        """Follow all that is pending, and return all that was found."""
        while self.pending:
            name, extra = self.pending.popleft()
            found = self.installed.get(name)
            if found is None:
                continue
            extras = [extra] if extra else ["", *_extras(name, found)]
            for requirement, _ in required(found, self.place.markers, extras):
                wanted = canonicalize_name(requirement.name)
                if wanted in self.installed or name in DISTRIBUTIONS:
                    for each in ("", *sorted(requirement.extras)):
                        self._add(wanted, f"required by {name}", each)
            if not extra:
                new = [
                    each
                    for each in self.contents[name].imported(self.modules[name])
                    if each not in self.known
                ]
                self.known.update(new)
                for module in new:
                    self.import_(module, name)
        return {name: how for name, how in sorted(self.found.items()) if is_held(name)}


def _extras(name: str, found: Distribution) -> list[str]:
    """Return the extras that count unasked: TensorFlow's, as its loader takes CUDA from wheels whoever wanted them."""
    return list(found.metadata.get_all("Provides-Extra") or ()) if name in DISTRIBUTIONS else []


def _is_at_start(file: str) -> bool:
    """Return whether Python runs a file at every start; those that only make a namespace import nothing of theirs."""
    return file in AT_START or (
        "/" not in file and file.endswith(".pth") and not file.endswith("-nspkg.pth")
    )
