"""A folder that every node of a job shares: each job has a folder of its own inside, and each value a file."""

from __future__ import annotations

import os

from envlock.runtime import strict_json
from envlock.runtime.errors import UsageError, WriteError
from envlock.runtime.fleet.statement import canonical, is_document, is_statement, root_of
from envlock.runtime.host import read_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Collection, Dict, List, Optional, Tuple

DEFAULT = ".envlock-fleet"
VARIABLE = "ENVLOCK_FLEET_DIR"
RANK = "rank-"
END = ".json"


class Folder:
    """The board of one job. Files are written whole and renamed, so that nobody reads half of one."""

    is_mortal = False

    def __init__(self, path: str, job: str) -> None:
        """Make the folder of the job.

        Raises:
            UsageError: the job has no name.
            WriteError: the folder cannot be made.
        """
        if not job:
            hint = "set ENVLOCK_FLEET_JOB to a word that no other job has"
            raise UsageError("the job has no name, so its ranks could meet those of another job", hint=hint)
        self.path = os.path.join(path, job)
        try:
            os.makedirs(self.path, exist_ok=True)
        except OSError as error:
            hint = f"name a folder that all nodes share and can write to: {VARIABLE}"
            raise WriteError(f"cannot create {self.path}: {error.strerror}", hint=hint) from None

    def post(self, name: str, value: Any) -> None:
        """Write a value.

        Raises:
            WriteError: the file cannot be written.
        """
        target = os.path.join(self.path, name + END)
        draft = f"{target}.{os.getpid()}.{os.urandom(4).hex()}"
        try:
            with open(draft, "wb") as stream:
                stream.write(canonical(value).encode("ascii"))
                stream.flush()
                os.fsync(stream.fileno())
            os.rename(draft, target)
        except OSError as error:
            raise WriteError(f"cannot write {target}: {error.strerror}", hint="check the folder and its disk") from None

    def peek(self, name: str) -> Any:
        """Return a value; None where there is none that can be read."""
        return read(os.path.join(self.path, name + END))

    def names(self) -> Collection[str]:
        """Return which values there are."""
        return names(self.path)

    def keep(self, statement: Any, document: Any) -> None:
        """Write a statement to be reduced later, and its facts unless they are there.

        Raises:
            WriteError: a file cannot be written.
        """
        facts = f"facts.{statement['root']}"
        if document is not None and not os.path.exists(os.path.join(self.path, facts + END)):
            self.post(facts, document)
        self.post(f"{RANK}{statement['rank']}", statement)


def names(path: str) -> Collection[str]:
    """Return the names of the values in the folder of a job."""
    try:
        return frozenset([name[: -len(END)] for name in os.listdir(path) if name.endswith(END)])
    except OSError:
        return frozenset()


def read(file: str) -> Any:
    """Return the value in a file; None where there is none, or where it is not JSON."""
    try:
        data = read_bytes(file)
        return None if data is None else strict_json.parse(data)
    except (OSError, ValueError):
        return None


def jobs(path: str) -> List[str]:
    """Return the jobs that have statements in a folder, sorted.

    Raises:
        UsageError: the folder cannot be read.
    """
    try:
        found = sorted(os.listdir(path))
    except OSError as error:
        hint = "name the folder that `envlock fleet report --to` wrote to"
        raise UsageError(f"cannot read {path}: {error.strerror}", hint=hint) from None
    return [name for name in found if any(each.startswith(RANK) for each in names(os.path.join(path, name)))]


def kept(path: str, job: str) -> Tuple[List[Any], Dict[str, Any]]:
    """Return the statements of a job and the facts by root, as `keep` wrote them; others are left out."""
    folder = os.path.join(path, job)
    statements: Dict[int, Any] = {}
    documents: Dict[str, Any] = {}
    for name in names(folder):
        kind, _, root = name.partition(".")
        if not (name.startswith(RANK) or (kind == "facts" and root)):
            continue
        value = read(os.path.join(folder, name + END))
        if name.startswith(RANK) and is_statement(value) and name == f"{RANK}{value['rank']}" and value["job"] == job:
            statements[value["rank"]] = value
        elif kind == "facts" and is_document(value) and root_of(value) == root:
            documents[root] = value
    return [statements[rank] for rank in sorted(statements)], documents


def chosen(environ: Any, named: Optional[str]) -> str:
    """Return the folder that is meant: the one named, that of the variable, or the one in the current folder."""
    return named or environ.get(VARIABLE) or DEFAULT
