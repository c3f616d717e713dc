"""A folder that all nodes of a job share: each job has its own subfolder, and each value is a file."""

from __future__ import annotations

import os
import stat
import time

from envlock.fleet.statement import canonical, is_document, is_statement, root_of
from envlock.runtime import strict_json
from envlock.runtime.errors import UsageError, WriteError
from envlock.runtime.host import read_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Collection, Dict, List, Optional, Tuple

    from envlock.fleet.statement import Document, Statement

DEFAULT = ".envlock-fleet"
VARIABLE = "ENVLOCK_FLEET_DIR"
RANK, FACTS = "rank-", "facts."
END = ".json"
DECISION = ".decision"
HOLD_WAIT, HOLD_LOOKS = 0.02, 25
"""Seconds between two tries to hold an answer, which another process of the rank may look at in that moment."""
LOOKED_AT = 8
"""Ranks of an attempt that another process looks for."""
MODE = 0o775
"""Independent of the umask: any user who can write to the folder can forge a verdict."""
ANOTHER = f"name another folder: {VARIABLE}"


class Folder:
    """The board of one job. Files are written completely and then renamed, so that no process reads
    half of one.
    """

    def __init__(self, path: Optional[str], job: str) -> None:
        """Create the folder of the job in `path`; without it, in the folder that the variable
        names, else the current one.

        Raises:
            UsageError: the job has no name, or other users can write to its folder.
            WriteError: the folder cannot be created.
        """
        if not job:
            hint = "set ENVLOCK_FLEET_JOB to a word that no other job has"
            raise UsageError(
                "the job has no name, so its ranks could meet those of another job", hint=hint
            )
        self.path = os.path.join(path or os.environ.get(VARIABLE) or DEFAULT, job)
        try:
            os.makedirs(self.path, MODE, exist_ok=True)
        except OSError as error:
            hint = f"name a folder that all nodes share and can write to: {VARIABLE}"
            raise WriteError(f"cannot create {self.path}: {error.strerror}", hint=hint) from None
        self._check()

    def _check(self) -> None:
        """Refuse a folder in which another user can write a verdict.

        That is a user who created it before, or whom its mode allows to write. Root and the members
        of its group are trusted.

        Raises:
            UsageError: another user can write to it.
        """
        status = os.lstat(self.path)
        if not stat.S_ISDIR(status.st_mode):
            raise UsageError(
                f"{self.path} is not a folder, so others can replace it",
                hint=f"remove it, or {ANOTHER}",
            )
        owner = status.st_uid
        # The file system is asked last, because that writes a file.
        if owner not in (0, os.geteuid()) and owner != self._get_own_number():
            who = f"belongs to user {owner}, and this process to user {os.geteuid()}"
            raise UsageError(
                f"{self.path} {who}, so its verdict can be forged", hint=f"remove it, or {ANOTHER}"
            )
        if status.st_mode & stat.S_IWOTH:
            hint = f"remove it and set a umask, mount it with `dir_mode=0775`, or {ANOTHER}"
            raise UsageError(
                f"every user can write to {self.path}, so its verdict can be forged", hint=hint
            )

    def _get_own_number(self) -> Optional[int]:
        """Return the user id that the file system has for this process: NFS can map root to the
        user `nobody`.
        """
        draft = os.path.join(self.path, f"owner{END}.{os.getpid()}.{os.urandom(4).hex()}")
        try:
            with open(draft, "xb") as stream:
                owner = os.fstat(stream.fileno()).st_uid
            os.unlink(draft)
            return owner
        except OSError:
            return None

    def post(self, name: str, value: object) -> str:
        """Write a value, replacing an earlier one; return its path.

        Raises:
            WriteError: the file cannot be written.
        """
        target, draft = self._write_draft(name, value)
        try:
            os.rename(draft, target)
        except OSError as error:
            raise _make_write_error("write", target, error) from None
        return target

    def settle(self, name: str, value: object) -> bool:
        """Write a value unless the file exists; return whether the file has this value.

        The complete draft is linked to the name, and the first link wins: on a network file system,
        too.

        Raises:
            WriteError: the file cannot be written, or the file system has no hard links.
        """
        target, draft = self._write_draft(name, value)
        try:
            os.link(draft, target)
            return True
        except FileExistsError:
            # If the answer of a file server was lost, the link is requested again, and finds
            # itself.
            return os.stat(draft).st_nlink > 1
        except OSError as error:
            raise _make_write_error("link", target, error) from None
        finally:
            os.unlink(draft)

    def _write_draft(self, name: str, value: object) -> Tuple[str, str]:
        """Return the path for a value, and a draft beside it that contains the value."""
        target = os.path.join(self.path, name + END)
        draft = f"{target}.{os.getpid()}.{os.urandom(4).hex()}"
        try:
            if "/" in name:
                os.makedirs(os.path.dirname(target), MODE, exist_ok=True)
            with open(draft, "wb") as stream:
                stream.write(canonical(value).encode("ascii"))
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            # On a full disk the draft is there, and empty.
            try:
                os.unlink(draft)
            except OSError:
                pass
            raise _make_write_error("write", target, error) from None
        return target, draft

    def peek(self, name: str) -> Any:
        """Return a value; None if it does not exist or is not JSON.

        Raises:
            UsageError: it is a decision, and other users can write to the folder.
        """
        value = _read(self.path, name)
        # The folder may have been opened to other users since it was created.
        if value is not None and name.endswith(DECISION):
            self._check()
        return value

    def names(self, folder: str = "") -> Collection[str]:
        """Return the names of the values in a folder."""
        return _list_names(os.path.join(self.path, folder))

    def hold(self, nonce: str, rank: int) -> None:
        """Hold the answer of this rank for as long as this process lives, or what it becomes.

        The operating system releases it, however the process ends. On a file system without locks,
        nothing is held.
        """
        try:
            held = os.open(os.path.join(self.path, nonce, f"{rank}{END}"), os.O_RDWR)
        except OSError:
            return
        # A program that the process becomes has to hold it, too.
        os.set_inheritable(held, True)
        for _ in range(HOLD_LOOKS):
            if _lock(held, is_shared=False):
                return
            time.sleep(HOLD_WAIT)
        os.close(held)

    def is_held(self, nonce: str) -> bool:
        """Return whether a rank of an attempt still lives; False where that cannot be seen."""
        ranks = sorted(int(name) for name in self.names(nonce) if name.isdigit())
        return any(self._is_locked(nonce, rank) for rank in ranks[:LOOKED_AT])

    def _is_locked(self, nonce: str, rank: int) -> bool:
        try:
            with open(os.path.join(self.path, nonce, f"{rank}{END}"), "rb") as answer:
                # Shared: several processes can look at the same moment.
                return _lock(answer.fileno(), is_shared=True) is False
        except OSError:
            return False

    def keep(self, statement: Statement, document: Optional[Document]) -> None:
        """Write a statement to be compared later, and its facts unless they exist already.

        Raises:
            WriteError: a file cannot be written.
        """
        facts = FACTS + statement["root"]
        if document is not None and not os.path.exists(os.path.join(self.path, facts + END)):
            self.post(facts, document)
        self.post(f"{RANK}{statement['rank']}", statement)


def _lock(file: int, *, is_shared: bool) -> Optional[bool]:
    """Return whether a file could be locked; None where its file system has no locks."""
    # Not at the top: a rank that is refused does not need it.
    import fcntl

    try:
        fcntl.flock(file, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _make_write_error(what: str, target: str, error: OSError) -> WriteError:
    if what == "write":
        hint = "check the folder and its disk"
    else:
        hint = f"name a folder with hard links: {VARIABLE}"
    return WriteError(f"cannot {what} {target}: {error.strerror}", hint=hint)


def _list_names(path: str) -> Collection[str]:
    try:
        return frozenset([name[: -len(END)] for name in os.listdir(path) if name.endswith(END)])
    except OSError:
        return frozenset()


def _read(path: str, name: str) -> object:
    try:
        data = read_bytes(os.path.join(path, name + END))
        if data is None:
            return None
        value: object = strict_json.parse(data)
    except (OSError, ValueError):
        return None
    return value


def list_jobs(path: str) -> List[str]:
    """Return the jobs that have statements in a folder, sorted.

    Raises:
        UsageError: the folder cannot be read.
    """
    try:
        names = sorted(os.listdir(path))
    except OSError as error:
        hint = "name the folder that `envlock fleet report --to` wrote to"
        raise UsageError(f"cannot read {path}: {error.strerror}", hint=hint) from None
    return [
        job
        for job in names
        if any(name.startswith(RANK) for name in _list_names(os.path.join(path, job)))
    ]


def read_statements(path: str, job: str) -> Tuple[List[Statement], Dict[str, Document]]:
    """Return the statements of a job and the facts by root, as `keep` wrote them; other files are
    skipped.

    Facts that no statement names are not read: a rank that writes many would fill the memory.
    """
    folder = os.path.join(path, job)
    statements: List[Statement] = []
    documents: Dict[str, Document] = {}
    for name in _list_names(folder):
        if name.startswith(RANK):
            value = _read(folder, name)
            if is_statement(value) and name == f"{RANK}{value['rank']}" and value["job"] == job:
                statements.append(value)
    for root in {each["root"] for each in statements}:
        document = _read(folder, FACTS + root)
        if is_document(document) and root_of(document) == root:
            documents[root] = document
    return sorted(statements, key=lambda each: int(each["rank"])), documents
