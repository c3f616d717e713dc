"""Deep verification: the files of an environment, and its bytecode."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from envlock.lock.models import PackageIdentity
from envlock.packages.bytecode_comparison import compare_bytecode
from envlock.packages.installation import Installation
from envlock.runtime.files.compiled_file import CompiledFile, parse_compiled_name
from envlock.runtime.files.survey import Survey
from envlock.runtime.files.survey import survey as survey_folders
from envlock.runtime.files.unowned import list_redirected
from envlock.runtime.files.verify_files import Watch, check, report, watch_nothing
from envlock.runtime.report import Finding


def survey(environment: Installation) -> Survey:
    """Return what can be verified in an environment; only metadata is read."""
    return survey_folders(str(environment.prefix), [str(folder) for folder in environment.folders])


def verify_files(
    survey: Survey,
    python: Path,
    locked: Mapping[str, PackageIdentity],
    watch: Watch = watch_nothing,
    standard: Iterable[CompiledFile] = (),
) -> list[Finding]:
    """Return a finding for every file that is not as recorded.

    Args:
        survey: the files to verify.
        python: the environment's interpreter, which compares the bytecode.
        locked: the packages of a lockfile.
        watch: shows the progress.
        standard: the bytecode of Python's own modules, which has no RECORD.
    """
    digests = {name: (package.content, package.built) for name, package in locked.items()}
    corrections, overwritten = {}, {}
    for name, package in locked.items():
        if package.wrong_record is not None:
            corrections[name] = package.wrong_record.files
        overwritten[name] = package.overwritten or {}
    faults, compiled = check(survey, digests, watch, corrections, overwritten)
    compiled += standard
    with watch("comparing bytecode", len(compiled)) as advance:
        faults += compare_bytecode(python, compiled, faults, advance)
    return report(survey, faults)


def list_standard_bytecode(
    environment: Installation, modules: Mapping[str, str]
) -> Iterator[CompiledFile]:
    """Yield the bytecode of modules of the standard library: the others, some 2,000, are not run.

    Args:
        environment: has the folder of the library on its import path.
        modules: those that ran, each with the names of its parts after the first word, as a lockfile has them.
    """
    library = next((folder for folder in environment.folders if (folder / "os.py").is_file()), None)
    if library is None:
        return
    sources = {f"{library}/{source}" for each in modules.items() for source in _list_sources(*each)}
    folders = {source.rpartition("/")[0] for source in sources}
    paths = [str(path) for folder in folders for path in Path(folder, "__pycache__").glob("*.pyc")]
    found = [file for file in map(parse_compiled_name, paths) if file is not None]
    for file in (*found, *list_redirected(folders, sys.pycache_prefix)):
        if file.source in sources:
            yield file


def _list_sources(name: str, value: str) -> list[str]:
    """Return the sources of a module, by their paths in the library."""
    parts = value.split()[1:]
    if not parts:
        return [f"{name}.py"]
    return [f"{name}/{part.replace('.', '/')}.py" for part in parts]
