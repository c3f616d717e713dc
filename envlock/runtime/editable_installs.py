"""Editable installs: which packages are imported from a folder of sources, from which one, and the
hook that an installer puts into `site-packages` for it.

There are many ways: a line with a path in a `.pth` file (most backends), a `.pth` file that imports
a finder beside it (setuptools, hatchling, PDM, scikit-build-core, meson-python), a link in
`site-packages` (Flit), and a line in `easy-install.pth` (setuptools before 64). Sources:
https://peps.python.org/pep-0660/ and
https://setuptools.pypa.io/en/latest/userguide/development_mode.html
"""

from __future__ import annotations

import os

from envlock.runtime.distributions import Distribution, find_distributions
from envlock.runtime.host import Host, read_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Tuple


ORIGIN = "direct_url.json"
SITES = ("site-packages", "dist-packages")
READ_LIMIT = 1 << 20  # bytes of a hook

COMPLETE_FINDERS = ("__editable___", "_editable_impl_", "_editable_skbc_")
"""How the names of finders begin that name every folder and file that they import from: those of
setuptools, of editables (for Hatch and PDM) and of scikit-build-core.
"""
LISTS = ("MAPPING", "NAMESPACES", "F.map_module(", "install(")
"""How the lines of a finder begin that list folders and files."""
OTHER_FINDERS = ("_editable", "_editable_loader")
"""How those of scikit-build-core before 0.11 and of meson-python end."""

NAMESPACE = (
    "import sys, types, os",
    "has_mfs = sys.version_info > (3, 5)",
    "p = os.path.join({root}, *{parts!r})",
    "importlib = __import__('importlib.util')",
    "importlib = has_mfs and __import__('importlib.util')",
    "__import__('importlib.machinery')",
    "has_mfs and __import__('importlib.machinery')",
    "m = sys.modules.setdefault({name!r}, importlib.util.module_from_spec("
    "importlib.machinery.PathFinder.find_spec({name!r}, [os.path.dirname(p)])))",
    "m = has_mfs and sys.modules.setdefault({name!r}, importlib.util.module_from_spec("
    "importlib.machinery.PathFinder.find_spec({name!r}, [os.path.dirname(p)])))",
    "m = m or sys.modules.setdefault({name!r}, types.ModuleType({name!r}))",
    "mp = (m or []) and m.__dict__.setdefault('__path__',[])",
    "(p not in mp) and mp.append(p)",
    "m and setattr(sys.modules[{parent!r}], {child!r}, m)",
)
"""The statements with which setuptools creates a namespace package at the start of Python.

Source: `_nspkg_tmpl` in setuptools/namespaces.py, from 28 to 80
"""
SITE_ROOT = "sys._getframe(1).f_locals['sitedir']"


def is_development_install(distribution: Distribution) -> bool:
    """Return whether a distribution was found in its own sources, where `setup.py develop` leaves
    its metadata: a folder NAME.egg-info outside of `site-packages`.
    """
    stem, ending = os.path.splitext(os.path.basename(distribution.info))
    return (
        ending == ".egg-info"
        and "-" not in stem
        and not distribution.folder.endswith(SITES)
        and os.path.isdir(distribution.info)
        and not distribution.has("installed-files.txt")
    )


def is_editable(distribution: Distribution) -> bool:
    """Return whether a distribution is imported from its sources, by what its installer says."""
    if distribution.has(ORIGIN):
        return _is_marked_editable(distribution)
    return is_development_install(distribution)


def find_project_folder(distribution: Distribution) -> str:
    """Return the folder of the project of a development install: where its `setup.py` is."""
    folder = distribution.folder
    for _ in range(3):
        if os.path.exists(os.path.join(folder, "setup.py")):
            return folder
        folder = os.path.dirname(folder)
    return distribution.folder


def list_roots(distribution: Distribution, project: str) -> List[str]:
    """Return the folders and files that an editable install imports from: those that its hook
    names, or the folder of its project.
    """
    if distribution.is_zipped or is_development_install(distribution):
        return [distribution.folder]
    roots: List[str] = []
    is_complete = True
    for name in _list_top_level(distribution):
        path = os.path.join(distribution.folder, name)
        if os.path.islink(path):
            roots.append(os.path.realpath(path))
        elif name.endswith(".pth"):
            roots += _read_paths(path)
        elif name.endswith(".py"):
            roots += _read_quoted_paths(path)
            is_complete = is_complete and name.startswith(COMPLETE_FINDERS)
    if not roots or not is_complete:
        roots.append(project)
    return list(dict.fromkeys(roots))


def _list_top_level(distribution: Distribution) -> List[str]:
    """Return the files beside its metadata folder that the RECORD of a distribution lists."""
    names = []
    for row in (distribution.read("RECORD") or "").splitlines():
        name = row.partition(",")[0]
        if name and "/" not in name and '"' not in name:
            names.append(name)
    return names


def _read_paths(file: str) -> List[str]:
    """Return the folders that a .pth file adds to the import path."""
    paths = []
    for line in _read_lines(file):
        text = line.strip()
        if text and not text.startswith(("#", "import ", "import\t")):
            paths.append(os.path.normpath(os.path.join(os.path.dirname(file), text)))
    return paths


def _read_quoted_paths(file: str) -> List[str]:
    """Return the existing folders and files that a finder imports from; a package by its folder."""
    paths = []
    for line in _read_lines(file):
        if not line.startswith(LISTS):
            continue
        for text in line.split("'")[1::2]:
            if text.startswith("/") and os.path.exists(text):
                folder, name = os.path.split(text)
                paths.append(folder if name.startswith("__init__.") else text)
    return paths


def _read_lines(file: str) -> List[str]:
    try:
        data = read_bytes(file, READ_LIMIT) or b""
    except OSError:
        return []
    return os.fsdecode(data).splitlines()


def owns_hook(host: Host, folder: str, name: str, code: List[bytes]) -> bool:
    """Return whether the code of a .pth file in a folder is the hook of an editable install there,
    and nothing else.

    The RECORD of an editable distribution must list the file, and each line must install a finder
    that this RECORD lists with its present content, or create a namespace package.
    """
    for distribution in find_distributions(host).values():
        if distribution.folder != folder or not distribution.has(ORIGIN):
            continue
        rows = (distribution.read("RECORD") or "").splitlines()
        if any(row.startswith(f"{name},") for row in rows) and _is_marked_editable(distribution):
            return all(
                creates_namespace(line) or _installs_finder(folder, line, rows) for line in code
            )
    return False


def _is_marked_editable(distribution: Distribution) -> bool:
    # Not at the top: it is read only where a .pth file runs code that no table knows.
    from envlock.runtime import strict_json

    text = distribution.read(ORIGIN) or ""
    try:
        document = strict_json.parse(text.encode("utf-8", "surrogateescape"))
        return bool(document["dir_info"]["editable"] is True)
    except (ValueError, KeyError, TypeError):
        return False


def _installs_finder(folder: str, line: bytes, rows: List[str]) -> bool:
    """Return whether a line imports a finder that these rows of a RECORD list, and does nothing but
    install it.
    """
    steps = [step.strip() for step in line.decode("utf-8", "replace").split(";")]
    module = steps[0][len("import") :].strip()
    is_finder = module.startswith(COMPLETE_FINDERS) or module.endswith(OTHER_FINDERS)
    if not module.isidentifier() or not is_finder:
        return False
    if steps[1:] not in ([], [f"{module}.install()"]):
        return False
    digest = _hash_as_record(os.path.join(folder, f"{module}.py"))
    return any(row.startswith(f"{module}.py,{digest},") for row in rows)


def _hash_as_record(file: str) -> Optional[str]:
    """Return the hash of a file as a RECORD has it; None if it cannot be read."""
    try:
        data = read_bytes(file, READ_LIMIT)
    except OSError:
        data = None
    if data is None:
        return None
    # Not at the top: they are needed only for such a hook.
    from base64 import urlsafe_b64encode
    from hashlib import sha256

    digest = urlsafe_b64encode(sha256(data).digest()).rstrip(b"=")
    return "sha256=" + digest.decode("ascii")


def creates_namespace(line: bytes) -> bool:
    """Return whether a line of a .pth file creates a namespace package as setuptools does, and
    nothing else.
    """
    statements = line.decode("utf-8", "replace").strip().split(";")
    root, name = _find_namespace(statements)
    if not all(part.isidentifier() for part in name.split(".")):
        return False
    parent, _, child = name.rpartition(".")
    known = {
        text.format(root=root, parts=tuple(name.split(".")), name=name, parent=parent, child=child)
        for text in NAMESPACE
    }
    # What follows the last semicolon is empty, or the end of a statement in some releases: `m`.
    return all(statement in known or statement in ("", "m") for statement in statements)


def list_namespace_hooks(distribution: Distribution) -> List[str]:
    """Return the .pth files of a distribution that create namespace packages, and do nothing else."""
    names = []
    for name in _list_top_level(distribution):
        if name.endswith(".pth"):
            lines = _read_lines(os.path.join(distribution.folder, name))
            if all(creates_namespace(os.fsencode(line)) for line in lines if line.strip()):
                names.append(name)
    return names


def _find_namespace(statements: List[str]) -> Tuple[str, str]:
    """Return where a namespace package begins, as an expression, and its name; empty without them."""
    root = name = ""
    for statement in statements:
        if statement.startswith("p = os.path.join("):
            root = statement[len("p = os.path.join(") :].partition(", *(")[0]
        if ".setdefault('" in statement and not name:
            name = statement.partition(".setdefault('")[2].partition("'")[0]
    is_plain = root[:1] == root[-1:] == "'" and root.count("'") == 2 and "\\" not in root
    if root != SITE_ROOT and not is_plain:
        return "", ""
    return root, name
