"""The distributions on the import path, from the names of folders: importing `importlib.metadata`
takes 40 ms.
"""

from __future__ import annotations

import os
import sys

from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host, note, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Iterator, List, Optional
    from zipfile import ZipFile


OWN_NAME = "tf-envlock"
"""Left out of every lockfile: the version of envlock changes nothing that it records (`created_by`
has it).
"""

NO_VERSION = Unavailable("its metadata gives no version", "no-metadata")


VENDORED = "/setuptools/_vendor"
"""The folder that setuptools 71 and newer adds to the import path when it is imported.

Source: https://github.com/pypa/setuptools/blob/v71.0.0/setuptools/__init__.py
"""


_ZIP_TAIL = 22 + 65535 + 20
"""Bytes: the end of a zip file, with the longest comment and what locates the end of a large one."""
_TABLE_LIMIT = 8 * 2**20
"""Bytes, as in `archives`; about 80,000 files."""
_COUNT_LIMIT = 1000
"""Distributions in one file; the largest archives that are put on an import path have some hundred."""
_MEMBER_LIMIT = 2**20
"""Bytes of a metadata file (a RECORD of 1.5 MB is TensorFlow's, which cannot be imported from a zip)."""
_READ_AT_ONCE = ("WHEEL", "INSTALLER", "direct_url.json", "PKG-INFO")
_READABLE = (0, 8)
"""Stored and deflated: Python imports nothing else (https://docs.python.org/3/library/zipimport.html)."""


class Distribution:
    """One installed distribution.

    Attributes:
        name: normalised as PEP 503 says.
        version: that of its metadata folder, with the local label; empty if that is not a valid
            version.
        folder: the `site-packages` that contains it.
        info: the `.dist-info` or `.egg-info` folder or file.
        rivals: versions of further metadata folders of the same name in the same folder; normally
            empty.
        is_zipped: whether it is imported from a zip file.
    """

    is_zipped = False

    __slots__ = ("folder", "info", "name", "rivals", "version")

    def __init__(self, name: str, version: str, folder: str, info: str) -> None:
        self.name = name
        self.version = version
        self.folder = folder
        self.info = info
        self.rivals: List[str] = []

    def read(self, file: str) -> Optional[str]:
        """Return the text of a file in the metadata folder, or None if it does not exist or cannot
        be read.
        """
        try:
            # An installer replaces the whole folder, which changes the one that was listed.
            return read_text(f"{self.info}/{file}", is_noted=False)
        except OSError:
            return None

    def has(self, file: str) -> bool:
        """Return whether the metadata folder has a file: half the cost of trying to read one that
        does not exist.
        """
        return os.access(f"{self.info}/{file}", os.F_OK)


class ZippedDistribution(Distribution):
    """A distribution in a zip file.

    Attributes:
        files: the texts of its small metadata files by name.
    """

    __slots__ = ("files",)
    is_zipped = True

    def __init__(
        self, name: str, version: str, folder: str, info: str, files: Dict[str, str]
    ) -> None:
        super().__init__(name, version, folder, info)
        self.files = files

    def read(self, file: str) -> Optional[str]:
        """Return the text of a metadata file, or None if it does not exist or cannot be read."""
        if file in self.files or file in _READ_AT_ONCE:
            return self.files.get(file)
        # Not at the top: hardly any import path has a zip file.
        from envlock.runtime.archives import open_zip

        try:
            with open_zip(self.folder) as archive:
                return _read_member(archive, f"{self.info[len(self.folder) + 1 :]}/{file}")
        except (OSError, ValueError):
            return None

    def has(self, file: str) -> bool:
        """Return whether there is a metadata file of this name."""
        return self.read(file) is not None


def find_distributions(host: Host) -> Dict[str, Distribution]:
    """Return every distribution that `import` can reach, by normalised name; of several, the first
    on the path.
    """
    if "distributions" not in host.cache:
        host.cache["distributions"] = _scan(host)
    distributions: Dict[str, Distribution] = host.cache["distributions"]
    return distributions


def list_pth_files(host: Host) -> Dict[str, List[str]]:
    """Return the names of the .pth files in each folder of the import path."""
    # The scan for distributions lists each folder and remembers these names, so that no folder is
    # listed twice.
    find_distributions(host)
    names: Dict[str, List[str]] = host.cache["pth"]
    return names


def list_doubled(host: Host) -> Dict[str, List[str]]:
    """Return, for each folder of the import path, the modules of one file that something there may go before."""
    find_distributions(host)
    names: Dict[str, List[str]] = host.cache["doubled"]
    return names


def get_import_path(host: Host) -> List[str]:
    """Return the import path without the script's own folder, the current one, and vendored ones.

    The first two differ between `envlock capture` and a script of the same environment, and a
    source checkout in them (a stray `.egg-info`) is not installed. Importing setuptools, as
    TensorFlow does, appends its `_vendor` folder, whose packages only setuptools uses.
    """
    skipped = {""}
    if os.path.exists("."):  # else `getcwd` raises, because the folder was removed
        skipped.add(os.getcwd())
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    if isinstance(main, str):
        skipped.add(os.path.dirname(os.path.abspath(main)))
    # Folders that users have put on the path themselves count, even if the script is in one.
    skipped -= set(list_entries_of_pythonpath(host))
    entries = []
    for entry in host.path:
        is_site = entry.endswith(("site-packages", "dist-packages"))
        if (entry not in skipped or is_site) and not entry.endswith(VENDORED):
            entries.append(entry)
    return entries


def get_first_import_path(host: Host) -> List[str]:
    """Return the import path with which Python started: code at the start can take its own folder off again."""
    path = get_import_path(host)
    if sys.flags.ignore_environment:
        return path
    first = host.start_environ().get("PYTHONPATH", "").split(os.pathsep)
    return [*(entry for entry in first if entry and os.path.abspath(entry) not in path), *path]


def list_entries_of_pythonpath(host: Host) -> List[str]:
    """Return the folders that PYTHONPATH names, without empty entries."""
    return list(filter(None, host.environ.get("PYTHONPATH", "").split(os.pathsep)))


def find_package_folder(host: Host, package: str) -> Optional[str]:
    """Return the folder of the importable package, or None; nothing is imported."""
    for entry in get_import_path(host):
        folder = os.path.join(entry, package)
        if os.path.isfile(os.path.join(folder, "__init__.py")):
            return folder
    return None


def normalise(name: str) -> str:
    """Return a distribution name as PEP 503 compares it: lower case, runs of `-_.` as one `-`."""
    return "-".join(filter(None, name.lower().replace("_", "-").replace(".", "-").split("-")))


def is_metadata_name(name: str) -> bool:
    """Return whether a file or folder of this name in `site-packages` can describe a distribution."""
    # pip renames what it is removing to `~NAME`.
    return name.endswith((".dist-info", ".egg-info")) and name[0].isalnum()


def is_remnant(info: str) -> bool:
    """Return whether a `.dist-info` or `.egg-info` describes no distribution.

    An upgrade that was interrupted leaves a folder without METADATA and without RECORD; a file or a
    broken link of such a name is not one either. pip and uv show none of them.
    """
    if info.lower().endswith("egg-info"):
        return not os.access(info, os.F_OK)
    return not os.access(f"{info}/METADATA", os.F_OK) and not os.access(f"{info}/RECORD", os.F_OK)


def _scan(host: Host) -> Dict[str, Distribution]:
    distributions: Dict[str, Distribution] = {}
    pth: Dict[str, List[str]] = {}
    doubled: Dict[str, List[str]] = {}
    seen = set()
    for entry in get_import_path(host):
        real = os.path.realpath(entry)
        if real in seen:
            continue
        seen.add(real)
        note(entry)
        try:
            files = os.listdir(entry)
        except NotADirectoryError:
            _add_zip(host, distributions, entry)
            continue
        except OSError:  # removed
            continue
        pth[entry] = [file for file in files if file.endswith(".pth")]
        doubled[entry] = _list_doubled(files)
        # Sorted, so that of two metadata folders with one name the same is first on every file
        # system.
        for file in sorted(files):
            # Nearly every name fails at once.
            if file[-4:].lower() != "info" or not is_metadata(entry, file):
                continue
            info = os.path.join(entry, file)
            is_described = _is_described(info)
            if not is_described and is_remnant(info):
                note(info)  # an installer may be about to fill it
                continue
            new = make_distribution(entry, file)
            if new is not None:
                if not is_described:  # nothing but the name of its folder
                    new.version = ""
                _add(distributions, new)
    host.cache["envlock"] = distributions.pop(OWN_NAME, None)
    host.cache["pth"] = pth
    host.cache["doubled"] = doubled
    return distributions


def _list_doubled(files: List[str]) -> List[str]:
    """Return the modules of one file in a folder that something of the same name may go before: a package, a library."""
    names = {file.partition(".")[0] for file in files if file.endswith(".so")}.union(files)
    return sorted(file[:-3] for file in files if file.endswith(".py") and file[:-3] in names)


def _is_described(info: str) -> bool:
    """Return whether the METADATA of a wheel is there and has a text."""
    if info.lower().endswith("egg-info"):
        return not is_remnant(info)
    try:
        return os.stat(f"{info}/METADATA").st_size > 0
    except OSError:
        return False


def _add(distributions: Dict[str, Distribution], new: Distribution) -> None:
    known = distributions.setdefault(new.name, new)
    if known is not new and known.folder == new.folder and known.version != new.version:
        known.rivals.append(new.version)


def _add_zip(host: Host, distributions: Dict[str, Distribution], path: str) -> None:
    found = _find_in_zip(path)
    if found is None:
        host.cache["unread"] = True
        return
    for distribution in found:
        _add(distributions, distribution)


def _find_in_zip(path: str) -> Optional[List[Distribution]]:
    """Return the distributions in a zip file; none for another file.

    None stands for a file that has more than can be looked at.
    """
    # Not at the top: hardly any import path has a zip file, and its reader takes milliseconds.
    from envlock.runtime.archives import open_zip

    try:
        if not os.path.isfile(path):  # opening a FIFO without a writer would block for ever
            return []
        if _has_long_table(path):
            return None
        with open_zip(path) as archive:
            names = sorted({name.partition("/")[0] for name in archive.namelist()})
            infos = [name for name in names if is_metadata(path, name)]
            if len(infos) > _COUNT_LIMIT:
                return None
            return list(_iter_distributions(path, infos, archive))
    except (OSError, ValueError):  # Python imports nothing from it, either
        return []


def _has_long_table(path: str) -> bool:
    """Return whether a zip file has a table of contents that is not read.

    Source: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT 4.3.15 and 4.3.16
    """
    with open(path, "rb") as stream:
        stream.seek(0, os.SEEK_END)
        stream.seek(max(0, stream.tell() - _ZIP_TAIL))
        tail = stream.read(_ZIP_TAIL)
    end = tail.rfind(b"PK\5\6")
    is_zip64 = tail[max(0, end - 20) : max(0, end - 16)] == b"PK\6\7"
    size = int.from_bytes(tail[end + 12 : end + 16], "little")
    return end >= 0 and (is_zip64 or size > _TABLE_LIMIT)


def _iter_distributions(path: str, infos: List[str], archive: ZipFile) -> Iterator[Distribution]:
    for info in infos:
        files: Dict[str, str] = {}
        for file in _READ_AT_ONCE:
            text = _read_member(archive, f"{info}/{file}")
            if text is None and file == "PKG-INFO":
                text = _read_member(archive, info)  # an `.egg-info` can be a file
            if text is not None:
                files[file] = text

        def make(
            name: str, version: str, folder: str, info: str, files: Dict[str, str] = files
        ) -> ZippedDistribution:
            return ZippedDistribution(name, version, folder, info, files)

        distribution = make_distribution(path, info, make)
        if distribution is not None:
            yield distribution


def _read_member(archive: ZipFile, member: str) -> Optional[str]:
    """Return the text of a file in a zip file, or None if it does not exist or is not read."""
    # Not at the top: hardly any import path has a zip file.
    from envlock.runtime.archives import reading

    try:
        with reading():
            entry = archive.getinfo(member)
            if entry.compress_type not in _READABLE or entry.file_size > _MEMBER_LIMIT:
                return None
            with archive.open(entry) as stream:
                return stream.read(_MEMBER_LIMIT).decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return None


def has_unread_zip(host: Host) -> bool:
    """Return whether the import path has a zip file with more than can be looked at."""
    find_distributions(host)
    return "unread" in host.cache


def is_metadata(folder: str, file: str) -> bool:
    """Return whether a name in an entry of the import path is that of the metadata of a distribution."""
    lower = file.lower()
    if lower == "egg-info":
        return folder.lower().endswith(".egg")
    return is_metadata_name(lower)  # in any case of letters, as importlib.metadata has it


def make_distribution(
    folder: str, file: str, make: Callable[..., Distribution] = Distribution
) -> Optional[Distribution]:
    """Return the distribution with this metadata in an entry of the import path; None if it has no
    name: pip, too, skips it.
    """
    kind = file[-len("dist-info") :].lower()
    stem = file.rpartition(".")[0]
    if not stem:  # `EGG-INFO` in the folder of an egg, which has the name
        stem, kind = os.path.basename(folder).rpartition(".")[0], "egg-info"
    name, dash, version = stem.partition("-")
    distribution = make(normalise(name), "", folder, os.path.join(folder, file))
    if not _is_name(distribution.name):
        return None
    if kind.endswith("egg-info"):
        # A development install has `name.egg-info` without a version.
        version = version.partition("-py")[0] or _get_header(
            distribution.read("PKG-INFO") or "", "Version"
        )
    elif not dash:
        version = ""
    if is_version(version):
        distribution.version = version
    return distribution


def _is_name(text: str) -> bool:
    return text.isascii() and text.replace("-", "").isalnum() and len(text) <= 128


def is_version(text: str) -> bool:
    """Return whether a lockfile can have this text as a version."""
    return (
        text[:1].isalnum()
        and text.isascii()
        and text.translate(_VERSION_SIGNS).isalnum()
        and len(text) <= 128
    )


_VERSION_SIGNS = {ord(char): None for char in ".!+_-"}


def _get_header(metadata: str, field: str) -> str:
    for line in metadata.splitlines():
        if not line:
            break
        if line.startswith(field + ":"):
            return line[len(field) + 1 :].strip()
    return ""
