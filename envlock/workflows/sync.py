"""Make an environment hold what a lockfile holds, by the environment's own installer; then verify it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from envlock.lock.interpreter import find_environment
from envlock.lock.live_facts import collect_live, collect_live_for
from envlock.lock.locks import get_file, load_lock
from envlock.lock.settings import get_value, read_name, read_project_name, read_toml
from envlock.lock.temporary import open_draft_folder
from envlock.packages import installer as installing
from envlock.packages.folder_packages import find_folders
from envlock.packages.installation import find_installation
from envlock.packages.installed_distributions import describe_all_installed
from envlock.packages.pins import BY_CONDA, Pin, list_pins, render_pins
from envlock.packages.proofs import LeftOut
from envlock.packages.prover import keep_valid_proofs
from envlock.packages.sources import find_source
from envlock.packages.wheel_cache import get_wheel_path, hash_file
from envlock.reports.progress import SILENT, Progress
from envlock.runtime.collectors import Snapshot
from envlock.runtime.distributions import OWN_NAME, normalise
from envlock.runtime.errors import EnvironmentMismatch, EnvlockError, OutsideError, UsageError
from envlock.runtime.judgement import build_policy, judge
from envlock.runtime.lockfile import SETTINGS
from envlock.runtime.machines import is_machine
from envlock.runtime.release import minor
from envlock.runtime.report import ABSENT, ERROR, Report, clean, count
from envlock.runtime.user_cache import require_cache
from envlock.runtime.version import __version__
from envlock.workflows.verify import verify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source
    from envlock.lock.models import Lockfile
    from envlock.packages.installer import Installer, Interpreter

NEW = (".venv", ".venv-locked")
"""The names of a new environment beside the lockfile; the second where the first exists."""
UNFINISHED = ".envlock-unfinished"
"""A file in an environment that is being made: a later call may remove what a killed one has left."""
WHEELHOUSE = "wheelhouse"
"""The folder beside the lockfile that `envlock export --wheelhouse` fills."""
DEEP = 3
"""Folders below the project in which the project of a locked package is looked for."""
SHOWN = 12
"""Changes that are listed one by one."""
PYTHON = ("python.version", "python.implementation", "python.abi")
CONFIG = "pyvenv.cfg"
PROJECT_FILES = (SETTINGS, "setup.cfg", "setup.py")
NO_PACKAGE = (("poetry", "package-mode"), ("uv", "package"), ("pdm", "distribution"))
"""Where the tables of tools say `false`, they do not install the project itself."""
NO_FILE = "its wheel is neither in the cache nor in `wheelhouse` beside the lockfile"


@dataclass(frozen=True)
class SyncRequest:
    """Which environment is meant.

    Attributes:
        new: the folder of a new environment; None for one beside the lockfile.
        python: the interpreter of an existing environment, which is changed.
        dry_run: change nothing.
    """

    new: Path | None = None
    python: Path | None = None
    dry_run: bool = False


BESIDE = SyncRequest()


class Change(NamedTuple):
    """What happens to one package: its versions before and after, None where it is not installed."""

    name: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        """Return a line."""
        if self.before is None:
            return clean(f"+ {self.name} {self.after}")
        if self.after is None:
            return clean(f"- {self.name} {self.before}")
        if self.before == self.after:
            return clean(f"~ {self.name} {self.after} (from the locked source)")
        return clean(f"~ {self.name} {self.before} -> {self.after}")


@dataclass(frozen=True)
class Plan:
    """What is to be done to an environment.

    Attributes:
        hashed: packages that are installed by hash.
        plain: those that are installed by version, URL or commit.
        folders: those of a folder of this machine, with that folder.
        files: wheels of this machine, by package.
        changes: what happens to each package.
        left_out: what cannot be installed.
    """

    hashed: Sequence[Pin]
    plain: Sequence[Pin]
    folders: Mapping[Path, Pin]
    files: Mapping[str, Path]
    changes: Sequence[Change]
    left_out: Sequence[LeftOut]

    @property
    def removed(self) -> list[str]:
        """The packages that are removed first: what the lockfile does not have, and what an
        installer would leave because its version is the locked one.
        """
        return [
            change.name
            for change in self.changes
            if change.after is None or change.before == change.after
        ]


class Synced(NamedTuple):
    """An environment after the command: what was left out, and the verdict; None if nothing was done."""

    python: Path
    left_out: Sequence[LeftOut]
    report: Report | None


def sync(
    lock: Source | None = None,
    request: SyncRequest = BESIDE,
    policy: str | None = None,
    *,
    progress: Progress = SILENT,
) -> Synced:
    """Make an environment hold the packages of a lockfile, and verify it.

    Args:
        lock: the lockfile; the one that `assert_locked()` would use when not given.
        request: the environment.
        policy: how strictly to compare; the lockfile's own when not given.
        progress: shows what is done.

    Raises:
        EnvironmentMismatch: the named environment has another Python.
        LockfileError: the lockfile is missing, unreadable, invalid, or newer than this envlock.
        OutsideError: the installer failed; a named environment is as it was, or the message says
            what it holds.
        UsageError: the locked Python or an installer is not here, or the new folder exists.
    """
    model = load_lock(lock)
    if request.python is not None:
        # Not resolved: the `bin/python` of an environment is a link to a Python without its packages.
        return _change(lock, model, request.python.absolute(), request, policy, progress)
    return _make(lock, model, request, policy, progress)


def _make(
    lock: Source | None,
    model: Lockfile,
    request: SyncRequest,
    policy: str | None,
    progress: Progress,
) -> Synced:
    folder = _choose_folder(lock, request.new)
    python = folder / "bin" / "python"
    interpreter = _find_interpreter(model, policy, folder)
    _say_what_differs(model, collect_live(interpreter.path), policy, progress)
    wanted = _find_installer_name(model)
    plan = _plan(lock, model, Snapshot({}, {}), None, policy)
    progress.say(f"new environment: {folder}, with Python {interpreter.version}")
    _say_plan(plan, progress)
    _say_conda(plan, folder, interpreter.version, progress)
    if request.dry_run:
        return Synced(python, plan.left_out, None)
    with _open_environment(folder):
        installer = installing.make_environment(folder, interpreter.path, wanted)
        left_out = _install(plan, installer, progress)
    progress.say(f"installed; to use it: . {folder / 'bin' / 'activate'}")
    command = shlex.join(installing.make_command(installer, _find_own_source()))
    progress.say(f"no lockfile has envlock; for a script that imports it: `{command}`")
    return _verify(lock, python, left_out, policy, progress)


def _find_own_source() -> str:
    """Return what envlock itself was installed from, as an installer takes it."""
    try:
        source = find_source(distribution(OWN_NAME))
    except PackageNotFoundError:
        source = None
    if source is None:
        return f"{OWN_NAME}=={__version__}"
    if source.commit is None:
        return source.place
    address = urlsplit(source.place)
    # It can have a password, which is not printed.
    shown = urlunsplit(address._replace(netloc=address.netloc.rpartition("@")[2]))
    return f"{OWN_NAME} @ git+{shown}@{source.commit}"


def _change(
    lock: Source | None,
    model: Lockfile,
    python: Path,
    request: SyncRequest,
    policy: str | None,
    progress: Progress,
) -> Synced:
    document = model.to_document()
    live = collect_live_for(document, python)
    _refuse_another_python(model, live, policy)
    _say_what_differs(model, live, policy, progress)
    plan = _plan(lock, model, live, python, policy)
    progress.say(f"environment: {python}, with {count(len(_get_packages(live)), 'package')}")
    _say_plan(plan, progress)
    _say_conda(plan, python.parent.parent, live.facts["python"]["version"], progress)
    if request.dry_run:
        return Synced(python, plan.left_out, None)
    left_out = list(plan.left_out)
    if plan.changes:
        installer = installing.choose_installer(python, installing.find_maker(python))
        try:
            _rehearse(plan, installer)
            left_out = _install(plan, installer, progress)
        except OutsideError as error:
            raise _describe_failure(error, live, collect_live_for(document, python)) from None
    return _verify(lock, python, left_out, policy, progress)


def _verify(
    lock: Source | None,
    python: Path,
    left_out: Sequence[LeftOut],
    policy: str | None,
    progress: Progress,
) -> Synced:
    progress.say(f"verifying {python}")
    report = verify(lock, policy, python=python, progress=progress)
    report.command = "sync"
    _name_no_circle(report, left_out)
    return Synced(python, left_out, report)


def _name_no_circle(report: Report, left_out: Sequence[LeftOut]) -> None:
    """Let no remedy be the command that has just run: where it left out a package, the reason is said."""
    reasons = {f"packages.{each.name}": each.reason for each in left_out}
    for finding in report.findings:
        package = ".".join(str(finding.where).split(".")[:2])
        if package in reasons:
            finding.fix = f"Install it in another way: {reasons[package]}."
    report.notes[:] = [note for note in report.notes if "`envlock sync" not in note]


def _choose_folder(lock: Source | None, new: Path | None) -> Path:
    """Return the folder of a new environment.

    Raises:
        UsageError: it exists, and is not what an earlier call has left unfinished.
    """
    if new is None:
        beside = get_file(lock).parent
        found = [beside / name for name in NEW if not os.path.lexists(beside / name)]
        left = [beside / name for name in NEW if (beside / name / UNFINISHED).is_file()]
        new = [*left, *found, beside / NEW[-1]][0]
    folder = new.absolute()
    is_ours = (folder / UNFINISHED).is_file()
    if os.path.lexists(folder) and not is_ours and (not folder.is_dir() or any(folder.iterdir())):
        hint, python = "name another folder with `--new`", folder / "bin" / "python"
        if python.exists():
            hint = f"run `envlock sync --python {python}` to change it, or {hint}"
        raise UsageError(f"{folder} exists", hint=hint)
    return folder


@contextmanager
def _open_environment(folder: Path) -> Iterator[None]:
    """Make a folder for an environment; it is removed if the block fails."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True)
        (folder / UNFINISHED).touch()
    except OSError as error:
        raise UsageError(
            f"cannot create {folder}: {error.strerror}", hint="name another folder with `--new`"
        ) from None
    try:
        yield
        (folder / UNFINISHED).unlink()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _find_installer_name(lock: Lockfile) -> str:
    """Return which of uv and pip installed most packages of a lockfile."""
    counts = Counter(fact.installer for fact in (lock.facts.packages or {}).values())
    return "uv" if counts["uv"] > counts["pip"] else "pip"


def _find_interpreter(lock: Lockfile, policy: str | None, folder: Path) -> Interpreter:
    """Return the interpreter here that is of the locked version, or of one that the policy accepts.

    Raises:
        UsageError: no such interpreter was found.
    """
    facts = lock.facts.python
    if facts is None or facts.version is None:
        raise UsageError(
            "the lockfile does not say which Python it is of",
            hint="make an environment, and name its interpreter: `envlock sync --python PATH`",
        )
    others = [Path(sys.executable)]
    try:
        found = find_environment(os.environ, Path.cwd()).python
        others += [found] if found is not None else []
    except UsageError:
        pass
    implementation = facts.implementation or "cpython"
    known = installing.list_interpreters(facts.version, others)
    known = [each for each in known if each.implementation == implementation]
    rule = build_policy(lock.to_document(), policy).row("python.version")["rule"]
    for each in known:
        if each.version == facts.version:
            return each
    for each in known:
        if minor(each.version) == minor(facts.version) and rule != "exact":
            return each
    versions = ", ".join(sorted({each.version for each in known})) or "none"
    raise UsageError(
        f"Python {facts.version} is locked, and here is {versions}",
        hint=_make_python_command(facts.version, folder),
    )


def _make_python_command(version: str, folder: Path) -> str:
    verb = "run" if shutil.which("uv") else "install uv, run"
    return (
        f"{verb} `uv venv --python {version} {folder}`, which downloads it, and then "
        f"`envlock sync --python {folder / 'bin' / 'python'}`"
    )


def _refuse_another_python(lock: Lockfile, live: Snapshot, policy: str | None) -> None:
    """Check that the interpreter is the locked one, as far as the policy compares it.

    Raises:
        EnvironmentMismatch: it is not.
    """
    report = judge(lock.to_document(), live, policy)
    findings = [each for each in report.of(ERROR) if str(each.where) in PYTHON]
    if not findings:
        return
    other = Report(findings, policy=report.policy, extent=report.extent)
    hint = "run `envlock sync`, which makes one with the locked Python; nothing was changed"
    raise EnvironmentMismatch(other.to_text(), other, hint=hint)


def _say_what_differs(
    lock: Lockfile, live: Snapshot, policy: str | None, progress: Progress
) -> None:
    """Say which facts of the machine differ, before anything is changed."""
    paths = list_machine_differences(judge(lock.to_document(), live, policy))
    if not paths:
        return
    number = count(len(paths), "fact")
    progress.say(
        f"warning: another machine, {number} that no installation changes: {', '.join(paths[:SHOWN])}"
    )
    if "gpu.driver_version" in paths:
        driver = lock.facts.gpu.driver_version if lock.facts.gpu is not None else None
        progress.say(f"warning: the locked NVIDIA driver is {driver}; root installs it")
    progress.say(
        "hint: `envlock capture --add-machine` accepts it, and `envlock verify -p bits` accepts it "
        "if the lockfile's canary has the same bits here"
    )


def list_machine_differences(report: Report) -> list[str]:
    """Return the facts of the machine that differ, without those that are asked only where a package is, such as what
    joblib counts: before it is installed they say nothing.
    """
    return [
        str(each.where)
        for each in report.of(ERROR)
        if is_machine(str(each.where))
        and (each.rule, each.actual) != ("exact_where_locked", ABSENT)
    ]


def _get_packages(live: Snapshot) -> Mapping[str, Mapping[str, Any]]:
    packages = live.facts.get("packages")
    return packages if isinstance(packages, dict) else {}


def _plan(
    lock: Source | None, model: Lockfile, live: Snapshot, python: Path | None, policy: str | None
) -> Plan:
    """Return what is to be done so that an environment holds the lockfile's packages."""
    pins, left_out = list_pins(model)
    present = _get_packages(live)
    kept = _list_kept(model, present, python)
    left_out = [each for each in left_out if each.name not in kept]
    wanted = [pin for pin in pins if pin.name not in kept]
    beside = get_file(lock).parent
    files = _find_files(wanted, beside)
    places = _find_places(wanted, beside, python)
    maker = _find_installer_name(model) if python is None else installing.find_maker(python)
    hashed, plain, folders = [], [], {}
    for pin in wanted:
        if pin.kind == "folder" and pin.name in places:
            folders[places[pin.name]] = pin
        elif pin.name in files:
            line = f"{pin.name}=={pin.version}"
            if pin.kind == "file":
                line = f"{pin.name} @ {files[pin.name].as_uri()}"
            hashed.append(pin._replace(line=line))
        elif pin.hashed:
            hashed.append(pin)
        elif pin.line:
            plain.append(pin)
        else:
            left_out.append(LeftOut(pin.name, pin.version, _explain(pin, python, maker)))
    own = _find_own_project(model, beside, present, python)
    if own is not None:
        folders[beside] = own
    changes = [
        Change(pin.name, _get_version(present, pin.name), pin.version)
        for pin in [*hashed, *plain, *folders.values()]
    ]
    changes += [
        Change(name, _get_version(present, name), None)
        for name in _list_unwanted(model, live, policy)
    ]
    changes.sort(key=lambda change: change.name)
    return Plan(hashed, plain, folders, files, changes, sorted(left_out))


def _get_version(present: Mapping[str, Mapping[str, Any]], name: str) -> str | None:
    if name not in present:
        return None
    return str(present[name].get("version") or "of unknown version")


def _list_kept(
    lock: Lockfile, present: Mapping[str, Mapping[str, Any]], python: Path | None
) -> set[str]:
    """Return the locked packages that are installed as they are locked."""
    if python is None:
        return set()
    locked = lock.to_document()["facts"].get("packages") or {}
    leaves = ("version", "origin", "source", "wheel_tags")
    kept = {
        name
        for name, facts in locked.items()
        if name in present and all(present[name].get(leaf) == facts.get(leaf) for leaf in leaves)
    }
    installed = describe_all_installed(lock, find_installation(python))
    valid = keep_valid_proofs(lock.identity, installed)
    proven = {name for name, each in lock.identities.items() if each.wheel is not None}
    return kept - proven | (set() if valid is None else kept & proven & valid.packages.keys())


def _list_unwanted(lock: Lockfile, live: Snapshot, policy: str | None) -> list[str]:
    """Return the packages that the lockfile does not have and the policy does not allow."""
    locked = lock.facts.packages or {}
    found = []
    for finding in judge(lock.to_document(), live, policy).of(ERROR):
        section, _, name = str(finding.where).partition(".")
        is_package = section == "packages" and name in _get_packages(live)
        if is_package and name not in locked:
            found.append(name)
    return sorted(set(found))


def _find_files(pins: Sequence[Pin], beside: Path) -> dict[str, Path]:
    """Return the wheels on this machine that have the locked hash, of packages that no index has."""
    found = {}
    for pin in pins:
        if not pin.on_disk or pin.sha256 is None or pin.wheel is None:
            continue
        cached = get_wheel_path(Path(require_cache(os.environ)), pin.sha256, pin.wheel)
        for file in (cached, beside / WHEELHOUSE / pin.wheel):
            if file.is_file() and hash_file(file).sha256 == pin.sha256:
                found[pin.name] = file
                break
    return found


def _find_places(pins: Sequence[Pin], beside: Path, python: Path | None) -> dict[str, Path]:
    """Return the folders of packages that were installed from a folder: those that an environment
    here was installed from, else those in the project.
    """
    wanted = {pin.name for pin in pins if pin.kind == "folder"}
    places: dict[str, Path] = {}
    if not wanted:
        return places
    for name, folder in _list_projects(beside, DEEP):
        if name in wanted:
            places.setdefault(name, folder)
    pythons = [python]
    with suppress(UsageError):
        pythons.append(find_environment(os.environ, Path.cwd()).python)
    for known in reversed([each for each in pythons if each is not None]):
        with suppress(EnvlockError):
            sources = find_folders(find_installation(known), wanted)
            places.update({name: Path(source.place) for name, source in sources.items()})
    return places


def _list_projects(folder: Path, depth: int) -> Iterator[tuple[str, Path]]:
    """Yield the names and folders of the projects in a folder, the outer ones first."""
    if any((folder / file).is_file() for file in PROJECT_FILES):
        with suppress(UsageError):
            yield read_name(folder) or "", folder
    if not depth or (folder / CONFIG).is_file():
        return
    with suppress(OSError):
        for child in sorted(folder.iterdir()):
            if child.is_dir() and not child.is_symlink() and not child.name.startswith("."):
                yield from _list_projects(child, depth - 1)


def _find_own_project(
    lock: Lockfile,
    beside: Path,
    present: Mapping[str, Mapping[str, Any]],
    python: Path | None,
) -> Pin | None:
    """Return the project itself, as it lies there; None if it is not a package, or installed already.

    As for uv, a project without a build system is not a package. Sources:
    https://docs.astral.sh/uv/concepts/projects/config/#build-systems
    https://python-poetry.org/docs/basic-usage/#operating-modes
    https://pdm-project.org/en/latest/reference/pep621/#package-or-application
    """
    name = lock.own_name
    if name is None or name in present or name != read_project_name(beside):
        return None
    settings = beside / SETTINGS
    document = read_toml(settings) if settings.is_file() else {}
    if any(get_value(document, "tool", *words) is False for words in NO_PACKAGE):
        return None
    has_system = bool(get_value(document, "build-system"))
    if not has_system and not (beside / "setup.py").is_file():
        return None
    if python is not None and _has_link(name, python):
        return None
    return Pin(name, "as it is", "folder", "", editable=True)


def _has_link(name: str, python: Path) -> bool:
    """Return whether an environment has the link of a development install of setuptools before 64: its
    metadata lies in the folder of the project, and in the current folder nothing counts as installed.
    """
    folders = find_installation(python).folders
    return any(normalise(file.stem) == name for each in folders for file in each.glob("*.egg-link"))


def _explain(pin: Pin, python: Path | None, maker: str) -> str:
    """Return why a package cannot be installed."""
    if pin.kind != "folder":
        return NO_FILE
    place = shlex.quote(str(python)) if python is not None else "PYTHON"
    # The environment of uv has no pip.
    install = f"uv pip install --python {place}" if maker == "uv" else f"{place} -m pip install"
    option = "-e " if pin.editable else ""
    return f"its folder was not found here: install it with `{install} --no-deps {option}FOLDER`"


def _say_plan(plan: Plan, progress: Progress) -> None:
    """Say what will be done: the numbers, the changes of what is installed, what is left out."""
    if not plan.changes:
        progress.say("nothing to install" if plan.left_out else "the packages are as locked")
    else:
        parts = [f"{len(plan.hashed)} by hash", f"{len(plan.plain)} by version, URL or commit"]
        if plan.folders:
            parts.append(f"{len(plan.folders)} from a folder")
        removed = [change for change in plan.changes if change.after is None]
        if removed:
            parts.append(f"{len(removed)} removed")
        progress.say(f"{count(len(plan.changes), 'change')}: {', '.join(parts)}")
    for change in plan.changes:
        if change.before is not None or len(plan.changes) <= SHOWN:
            progress.say(f"  {change}")
    for folder, pin in plan.folders.items():
        progress.say(f"  {pin.name}: {folder}, as it is now")


def _say_conda(plan: Plan, folder: Path, version: str, progress: Progress) -> None:
    """Say how the packages that only conda installs come into an environment: into this one, if conda made it."""
    missing = [f"{each.name}={each.version}" for each in plan.left_out if each.reason == BY_CONDA]
    if missing:
        words = ["create", "--name", "locked", f"python={version}"]
        if (folder / "conda-meta").is_dir():  # conda installs nowhere else
            words = ["install", "--prefix", str(folder)]
        command = shlex.join(["conda", *words, *missing])
        rest = 'envlock sync --python "$CONDA_PREFIX/bin/python"'
        progress.say(f"with conda first: `{command}`, and in that environment `{rest}`")


def _rehearse(plan: Plan, installer: Installer) -> None:
    """Install into a folder that is thrown away: what cannot be downloaded or built leaves the
    environment as it is, and what was is in the installer's cache.
    """
    if plan.removed or (plan.hashed and plan.plain):
        with open_draft_folder(None) as draft:
            _install_pins(plan, installer, draft / "target")


def _install(plan: Plan, installer: Installer, progress: Progress) -> list[LeftOut]:
    """Change an environment as planned; return what is left out."""
    left_out = list(plan.left_out)
    progress.say(f"installing with {installer.name}")
    if plan.removed:
        installing.uninstall(installer, plan.removed)
    _install_pins(plan, installer, None)
    for folder, pin in plan.folders.items():
        left_out += _install_folder(installer, folder, pin)
    return left_out


def _install_folder(installer: Installer, folder: Path, pin: Pin) -> list[LeftOut]:
    try:
        installing.install_folder(installer, folder, editable=pin.editable)
    except OutsideError as error:
        return [LeftOut(pin.name, pin.version, f"{folder}: {error.message}")]
    return []


def _install_pins(plan: Plan, installer: Installer, target: Path | None) -> None:
    if plan.plain:
        text = render_pins(plan.plain, hashes=False)
        installing.install(installer, text, target=target)
    if not plan.hashed:
        return
    with open_draft_folder(None) as links:
        for file in plan.files.values():
            (links / file.name).symlink_to(file)
        text = render_pins(plan.hashed, hashes=True)
        found = links if plan.files else None
        installing.install(installer, text, hashes=True, links=found, target=target)


def _describe_failure(error: OutsideError, before: Snapshot, after: Snapshot) -> OutsideError:
    """Return the error of an installer with what it has left."""
    old, new = _get_packages(before), _get_packages(after)
    changes = [
        Change(name, _get_version(old, name), _get_version(new, name))
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]
    if not changes:
        return OutsideError(f"{error.message}; the environment is as it was", hint=error.hint)
    return OutsideError(
        f"{error.message}; the environment was changed in part:",
        hint=f"{error.hint}: it goes on from here",
        lines=[f"  {change}" for change in changes],
    )
