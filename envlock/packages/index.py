"""The package indexes, asked by pip as a child: its settings, logins, proxies, mirrors and retries are
those of every installation.

Only wheels are asked for, so no code of a package runs. Every name and version reaches pip through a
requirements file, and every file that pip has downloaded is hashed here.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

from packaging.tags import parse_tag, platform_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from envlock.data.specifiers import parse_version
from envlock.guest import launch
from envlock.lock.temporary import open_draft_folder
from envlock.packages import wheel_cache
from envlock.packages.installer import drop_settings, find_reason
from envlock.packages.parallel import TIMEOUT, run_all
from envlock.packages.proofs import NO_WHEEL
from envlock.packages.public_index import PUBLIC_INDEX
from envlock.runtime.collectors.packages import strip_url_secrets
from envlock.runtime.errors import EnvlockError, OutsideError, UsageError
from envlock.runtime.release import minor
from envlock.runtime.report import clean

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.models import Lockfile

PIP = """
import runpy, sys
sys.path[:] = [folder for folder in sys.path if folder]  # -c puts the current folder there
sys.argv[0] = "pip"
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
"""A program that runs the pip beside envlock; `python -m pip` would import a file of the current folder."""
LIMITED = """
import resource
for kind, gib in ((resource.RLIMIT_FSIZE, {file}), (resource.RLIMIT_DATA, {memory})):
    most, hard = int(gib * 2**30), resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (min(most, hard) if hard >= 0 else most, hard))
"""
"""Lines before it: pip itself takes all that an index sends, until the disk or the memory is full."""
LARGEST_FILE = 8.0
"""GiB that pip may write into one file."""
MOST_MEMORY = 1.0
"""GiB of memory that pip may use: a page is read as a whole."""
TOO_MUCH = (b"File too large", b"MemoryError")
"""What pip says at these limits."""

JOBS = 4
TOGETHER = 12
"""Packages that one pip is asked for: it takes a second to start, and stops at the first it cannot find."""
INDEX_URL = "ENVLOCK_INDEX_URL"
NO_ENTRIES = " "
"""A list without entries, as a variable of pip's; an empty one would leave the entries of its files."""
NO_OTHER_PLACES = {
    "PIP_EXTRA_INDEX_URL": NO_ENTRIES,
    "PIP_FIND_LINKS": NO_ENTRIES,
    "PIP_NO_INDEX": "0",
}
OWN_SETTINGS = {
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_QUIET": "0",  # what it prints tells a page that it cannot read from one without the package
    "PIP_REQUIRE_HASHES": "0",
    "PIP_REQUIRE_VIRTUALENV": "0",
    "PIP_USER": "0",
    "PIP_REQUIREMENT": NO_ENTRIES,
    "PIP_CONSTRAINT": NO_ENTRIES,
    "PIP_EDITABLE": NO_ENTRIES,
    "PIP_PLATFORM": NO_ENTRIES,
    "PIP_ABI": NO_ENTRIES,
}
"""Variables, which go before pip's files: only what is wanted is asked for, and pip says what it did."""
FILES_OF_PUBLIC_INDEX = "files.pythonhosted.org"
HINT = "check the index (`pip config list`, ENVLOCK_INDEX_URL), the network and the proxy (HTTPS_PROXY)"

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_URL = re.compile(r"https?://[^\s\"'#\\]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ADDRESS = re.compile(r"[^\s\"'\\]+")
_UNREADABLE = re.compile(r"Could not fetch URL (\S+): (?!404 |410 )(.*) - skipping")
"""pip's line, with `-vv`, on a page that it could not read; it goes on as if that page named no file."""
_INDEXES = re.compile(r"^Looking in indexes: (.*)$", re.MULTILINE)
_NAMED = re.compile(r"^[A-Za-z0-9._-]+=")
"""The name of an index before its URL, in uv's variables."""
NOWHERE = b"No matching distribution found for"
NO_LINE = "installers do not accept its version or its URL"


class NoWheelError(OutsideError):
    """No index has the wheel, as far as all of them have answered."""


class Target(NamedTuple):
    """The Python that wheels are for.

    Attributes:
        version: such as 3.12.
        abi: such as cp312 or cp313t.
        platforms: those of its wheels, the best one first.
    """

    version: str
    abi: str
    platforms: tuple[str, ...]


class Offer(NamedTuple):
    """A wheel of an index that was downloaded: its bytes are at `path`, and have this hash and size.

    `url` and `index_url` are as pip names them, without secrets; empty if they are unknown.
    """

    name: str
    sha256: str
    size: int
    path: Path
    url: str = ""
    index_url: str = ""
    yanked: bool = False


class Wanted(NamedTuple):
    """A package that is asked for: at a URL, or else in all indexes; only with this hash if there is
    one.
    """

    name: str
    version: str
    url: str | None = None
    sha256: str | None = None

    @property
    def line(self) -> str | None:
        """Its line of a requirements file; None if no line can hold it."""
        is_version = parse_version(self.version) is not None and _ADDRESS.fullmatch(self.version)
        if _NAME.fullmatch(self.name) is None or not is_version:
            return None
        text = f"{self.name}=={self.version}"
        if self.url is not None:
            if _URL.fullmatch(self.url) is None:
                return None
            text = f"{self.name} @ {self.url}"
        return text if self.sha256 is None else f"{text} --hash=sha256:{self.sha256}"


def make_target(lock: Lockfile, platforms: Iterable[str] | None = None) -> Target:
    """Return the Python of a lockfile, on these platforms; when not given, on those of this machine."""
    facts = lock.facts.python
    version = facts.version if facts is not None else None
    version = minor(version or "{}.{}".format(*sys.version_info))
    words = ((facts.abi if facts is not None else None) or "").split("-")
    abi = f"cp{version.replace('.', '')}"
    if words[0] == "cpython" and len(words) > 1:
        abi = f"cp{words[1]}"
    elif words[0].startswith("pypy"):
        abi = "_".join(words[:2])
    return Target(version, abi, tuple(platform_tags() if platforms is None else platforms))


Found = dict[str, "Offer | OutsideError"]
"""By name, the wheel or the reason for its absence."""


@dataclass(frozen=True)
class PackageIndex:
    """The indexes that pip asks.

    Attributes:
        target: the Python that wheels are for.
        cache: the folder of envlock's cache.
        prefix: the environment's `sys.prefix`, which may hold a `pip.conf`.
    """

    target: Target
    cache: Path
    prefix: Path | None = None

    @property
    def named(self) -> list[str]:
        """The indexes that are asked in place of those of the settings; none if these are asked."""
        return os.environ.get(INDEX_URL, "").split()

    def find(self, wanted: Sequence[Wanted], seconds: float = TIMEOUT) -> Found:
        """Return the wheel that pip would install of each package, or the reason for its absence.

        Raises:
            OutsideError: an index does not answer.
            TimeoutError: it takes longer.
            UsageError: a setting names something that is not an index.
        """
        return _ask_for_all(wanted, self._find, seconds)

    def fetch(self, wanted: Sequence[Wanted], seconds: float = TIMEOUT) -> Found:
        """Return the wheel of each package that has the wanted hash, or the reason for its absence; raises the
        errors of `find`.
        """
        return _ask_for_all(wanted, self._fetch, seconds)

    def find_tagged(self, wanted: Wanted, tags: Sequence[str]) -> Offer | OutsideError:
        """Return the wheel of a package for the platforms of these tags, or the reason for its absence; raises
        the errors of `find`.
        """
        platforms = tuple(tag.platform for text in tags for tag in sorted(parse_tag(text), key=str))
        target = self.target._replace(platforms=platforms)
        return replace(self, target=target).find([wanted])[wanted.name]

    def make_environ(self) -> dict[str, str]:
        """Return the variables of a pip that asks these indexes and no person."""
        environ = {**drop_settings(os.environ), **OWN_SETTINGS}
        if self.named:
            # The names of private packages are sent nowhere else.
            environ.update(NO_OTHER_PLACES)
        if shutil.which("keyring") is not None:
            environ.setdefault("PIP_KEYRING_PROVIDER", "subprocess")
        settings = self.prefix / "pip.conf" if self.prefix is not None else None
        if settings is not None and settings.is_file():
            environ.setdefault("PIP_CONFIG_FILE", str(settings))
        return environ

    def list_options(self) -> list[str]:
        """Return the lines of a requirements file that name the indexes, beside pip's own settings."""
        if self.named:
            first, *others = map(_check_address, self.named)
            return [f"--index-url {first}", *(f"--extra-index-url {each}" for each in others)]
        return [
            f"{option} {_check_address(url)}"
            for option, url in _list_uv_indexes(os.environ, Path.cwd())
        ]

    def _find(self, wanted: Sequence[Wanted]) -> dict[str, Offer]:
        with open_draft_folder(wheel_cache.prepare(self.cache)) as draft:
            report = draft / "report.json"
            words = [
                "install",
                "--dry-run",
                "--ignore-installed",
                "--target",
                str(draft / "target"),
            ]
            told = self._run([*words, "--report", str(report)], wanted, draft)
            offers = _read_report(report, told)
            if not all(each.name in offers for each in wanted):
                raise OutsideError("pip does not say which wheels it found", hint=HINT)
            hashed = [each._replace(sha256=offers[each.name].sha256) for each in wanted]
            fetched = self._fetch(hashed, draft)
        return {
            name: offer._replace(
                url=offers[name].url, index_url=offers[name].index_url, yanked=offers[name].yanked
            )
            for name, offer in fetched.items()
        }

    def _fetch(self, wanted: Sequence[Wanted], within: Path | None = None) -> dict[str, Offer]:
        """Download wheels with a known hash into the cache; those in it are only hashed again."""
        found = {each.name: self._get_cached(each) for each in wanted}
        missing = [each for each in wanted if found[each.name] is None]
        if missing:
            with open_draft_folder(within or wheel_cache.prepare(self.cache)) as draft:
                self._run(["download", "--dest", str(draft / "files")], missing, within or draft)
                for file in sorted((draft / "files").iterdir()):
                    sha256 = wheel_cache.hash_file(file).sha256
                    wheel_cache.rename(self.cache, file, sha256)
            found.update({each.name: self._get_cached(each) for each in missing})
        offers = {name: offer for name, offer in found.items() if offer is not None}
        for each in wanted:
            if each.name not in offers:
                raise OutsideError(
                    f"{each.name}: what was downloaded is not the expected file", hint=HINT
                )
        return offers

    def _get_cached(self, wanted: Wanted) -> Offer | None:
        folder = self.cache / wheel_cache.WHEELS / (wanted.sha256 or "")
        for file in sorted(folder.glob("*.whl")):
            with contextlib.suppress(InvalidWheelFilename):
                is_named = canonicalize_name(parse_wheel_filename(file.name)[0]) == wanted.name
                cached = wheel_cache.find_intact(file, wanted.sha256) if is_named else None
                if cached is not None:
                    return Offer(file.name, cached.sha256, cached.size, file)
        return None

    def _run(self, words: Sequence[str], wanted: Sequence[Wanted], draft: Path) -> str:
        """Run pip for the wheels of packages, and return what it printed.

        Raises:
            NoWheelError: no index has one of the wheels.
            OutsideError: pip failed; an index that could not be read is `unreachable`.
        """
        lines = draft / "requirements.txt"
        text = [*self.list_options(), *(each.line or "" for each in wanted), ""]
        lines.write_text("\n".join(text), encoding="utf-8")
        options = ["--no-deps", "--only-binary", ":all:", "--ignore-requires-python", "-vv"]
        options += ["--cache-dir", str(draft / "http"), "--python-version", self.target.version]
        options += ["--implementation", self.target.abi[:2], "--abi", self.target.abi]
        for platform in self.target.platforms:
            options += ["--platform", platform]
        program = LIMITED.format(file=LARGEST_FILE, memory=MOST_MEMORY) + PIP
        asked = ["-c", program, *words, *options, "--requirement", str(lines)]
        # In the draft, as a pip that is killed leaves what it has downloaded.
        environ = {**self.make_environ(), "TMPDIR": str(draft)}
        done = launch.ask_python(asked, None, timeout=TIMEOUT, environ=environ)
        told = done.output.decode("utf-8", "replace")
        if done.code == 0:
            return told
        raise _explain(told, done)


def _explain(told: str, done: launch.Ended) -> OutsideError:
    """Return the error of a pip that failed."""
    unread = _UNREADABLE.search(told)
    if unread is not None:
        place = clean(strip_url_secrets(unread[1]) or "an index")
        error = OutsideError(f"{place} cannot be read: {clean(_hide(unread[2]))}", hint=HINT)
        error.unreachable = True
        return error
    if NOWHERE in done.errors:
        return NoWheelError(NO_WHEEL)
    if any(words in done.errors for words in TOO_MUCH):
        reason = (
            f"an index sends a file of more than {LARGEST_FILE:g} GiB or a page of {MOST_MEMORY:g}"
        )
    else:
        reason = find_reason(done).partition(" Traceback ")[0]
    return OutsideError(f"pip {done.ending}: {clean(_hide(reason))}", hint=HINT)


def _hide(text: str) -> str:
    """Return a text without the secrets of the addresses in it."""
    return re.sub(r"https?://\S+", lambda match: strip_url_secrets(match[0]) or "an address", text)


def _ask_for_all(
    wanted: Sequence[Wanted], ask: Callable[[Sequence[Wanted]], dict[str, Offer]], seconds: float
) -> Found:
    """Ask for several packages at a time, and for each alone of those among which pip stopped at one."""
    found: Found = {each.name: NoWheelError(NO_LINE) for each in wanted if each.line is None}
    possible = [each for each in wanted if each.line is not None]

    def work(group: Sequence[Wanted]) -> Found:
        try:
            return {**ask(group)}
        except OutsideError as error:
            if error.unreachable:
                raise
            if len(group) == 1:
                return {group[0].name: error}
        return {name: each for one in group for name, each in work([one]).items()}

    groups = [possible[start : start + TOGETHER] for start in range(0, len(possible), TOGETHER)]
    for _, result in run_all(groups, work, jobs=JOBS, seconds=seconds):
        if isinstance(result, EnvlockError):
            raise result
        found.update(result)
    return found


def _read_report(file: Path, told: str) -> dict[str, Offer]:
    """Return what pip would install, by name: hash, address and index; the bytes are not there yet.

    Raises:
        OutsideError: the report is malformed.
    """
    listed = _INDEXES.search(told)
    indexes = [f"{url.rstrip('/')}/" for url in listed[1].split(", ")] if listed else [PUBLIC_INDEX]
    offers: dict[str, Offer] = {}
    try:
        for row in json.loads(file.read_bytes())["install"]:
            name = canonicalize_name(row["metadata"]["name"])
            url = str(row["download_info"]["url"])
            sha256 = str(row["download_info"]["archive_info"]["hashes"]["sha256"])
            if _SHA256.fullmatch(sha256) is None:
                raise ValueError(sha256)
            yanked = bool(row.get("is_yanked"))
            offers[name] = Offer("", sha256, 0, file, url, _find_index(url, indexes), yanked)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise OutsideError("pip does not say which wheels it found", hint=HINT) from None
    return offers


def _find_index(url: str, indexes: Sequence[str]) -> str:
    """Return the index that a file is of; empty if that is unknown, or it is of a folder."""
    if url.startswith("file:"):
        return ""
    host = urlsplit(url).netloc.rpartition("@")[2]
    if host == FILES_OF_PUBLIC_INDEX:
        host = urlsplit(PUBLIC_INDEX).netloc
    for index in indexes:
        if len(indexes) == 1 or urlsplit(index).netloc.rpartition("@")[2] == host:
            return index
    return ""


def _list_uv_indexes(environ: Mapping[str, str], project: Path) -> Iterator[tuple[str, str]]:
    """Yield the indexes of uv's variables and of the project's settings of uv, as options of pip."""
    default = environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL")
    if default:
        yield "--index-url", _NAMED.sub("", default)
    extra = f"{environ.get('UV_INDEX', '')} {environ.get('UV_EXTRA_INDEX_URL', '')}"
    for url in extra.split():
        yield "--extra-index-url", _NAMED.sub("", url)
    for url in re.split(r"[\s,]+", environ.get("UV_FIND_LINKS", "").strip()):
        if url:
            yield "--find-links", url
    for row in _read_uv_table(project):
        url, name = str(row.get("url") or ""), str(row.get("name") or "")
        if row.get("format") == "flat":
            yield "--find-links", url
        elif url:
            option = "--index-url" if row.get("default") is True else "--extra-index-url"
            yield option, _add_login(url, name, environ)


def _read_uv_table(project: Path) -> list[dict[str, object]]:
    """Return the rows of `[[tool.uv.index]]` of the project's pyproject.toml or uv.toml."""
    for folder in (project, *project.parents):
        for name, keys in (("uv.toml", ("index",)), ("pyproject.toml", ("tool", "uv", "index"))):
            if (folder / name).is_file():
                try:
                    value: Any = tomllib.loads((folder / name).read_text("utf-8"))
                    for key in keys:
                        value = value.get(key, {})
                    return [row for row in value if isinstance(row, dict)]
                except (OSError, ValueError, AttributeError, TypeError, RecursionError):
                    raise UsageError(
                        f"cannot read the indexes of {folder / name}", hint="correct the file"
                    ) from None
    return []


def _add_login(url: str, name: str, environ: Mapping[str, str]) -> str:
    """Return the address of one of uv's indexes, with the login that uv's variables have for its name."""
    prefix = f"UV_INDEX_{re.sub('[^A-Z0-9]', '_', name.upper())}"
    user = environ.get(f"{prefix}_USERNAME", "")
    password = environ.get(f"{prefix}_PASSWORD", "")
    if not name or not (user or password) or "@" in url:
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        return url  # pip says what is wrong with it
    login = f"{quote(user, safe='')}:{quote(password, safe='')}"
    return urlunsplit(parts._replace(netloc=f"{login}@{parts.netloc}"))


def _check_address(text: str) -> str:
    """Return the address of an index as an option of a requirements file.

    Raises:
        UsageError: it is neither a URL nor a path.
    """
    if "://" not in text:
        text = Path(text).expanduser().absolute().as_uri()
    if _ADDRESS.fullmatch(text) is None or not text.isprintable():
        raise UsageError(
            "a package index is neither a URL nor a folder",  # not shown: it may contain a password
            hint="check ENVLOCK_INDEX_URL, `pip config list` and the settings of uv",
        )
    return text
