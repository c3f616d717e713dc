"""What a build asks of an image: facts, modules that cannot be imported, what is wrong with its files and with what it
loads, which files are its own, and the lockfile that it is held to.
"""

from __future__ import annotations

import json
import os
import stat
import sys

from envlock.runtime.assertion import say
from envlock.runtime.collectors import take_snapshot
from envlock.runtime.errors import EnvlockError, FactError
from envlock.runtime.files.deep import verify_files
from envlock.runtime.files.file_digest import hash_file
from envlock.runtime.host import Host
from envlock.runtime.image import explain
from envlock.runtime.judgement import LOADED, collect_here
from envlock.runtime.loaded.base_files import hold_base
from envlock.runtime.loaded.process_check import check_process
from envlock.runtime.loader.unloadable import find_unloadable
from envlock.runtime.lockfile import read_file
from envlock.runtime.report import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, List

    Load = Callable[[str], object]


def print_answer(argv: List[str], lock_path: str, load: Load) -> int:
    """Print the answer to `--facts`, `--deep`, `--loaded`, `--held` or `--files EPOCH` as JSON; return the exit code.

    Args:
        argv: the question.
        lock_path: the lockfile in the image.
        load: imports a module by its name, which this half does not do itself.
    """
    try:
        if argv[0] == "--files":
            answer = list_files(int(argv[1]))  # type: object
        elif argv[0] == "--loaded":
            answer = check_loaded(lock_path, load)
        elif argv[0] == "--held":
            answer = hold_base(read_file(lock_path), Host())
        else:
            answer = collect_facts(lock_path, with_files=argv[0] == "--deep")
    except EnvlockError as error:
        say(explain(error))
        return error.exit_code
    # What is imported may have printed a line without an end.
    sys.stdout.write("\n" + json.dumps(answer))
    return 0


def collect_facts(lock_path: str, *, with_files: bool) -> List[object]:
    """Return the facts, those that could not be collected, and the modules that cannot be imported.

    With `with_files`, also what is wrong with the installed files.

    Raises:
        LockfileError: the lockfile is not valid, or files are to be judged without one.
    """
    # As the command will see this machine: started with the remaining variables.
    host = Host(started_with=dict(os.environ))
    if not with_files and not os.path.isfile(lock_path):
        # The facts as they are here: there is no lockfile whose origins could be restored.
        here = take_snapshot(host)
        return [here.facts, here.unavailable, find_unloadable(host)]
    lock = read_file(lock_path)
    found = collect_here(lock, host)
    answer = [found.facts, found.unavailable, find_unloadable(host)]  # type: List[object]
    if with_files:
        findings, _ = verify_files(lock)
        answer.append([finding.to_json() for finding in findings])
    return answer


def check_loaded(lock_path: str, load: Load) -> List[object]:
    """Return what is wrong with the files that a program has loaded after its imports, as line 1 of a
    script would find it.

    Raises:
        LockfileError: the lockfile is not valid.
        FactError: the kernel does not say what is loaded, or an import fails.
    """
    lock = read_file(lock_path)
    live = collect_here(lock, Host(started_with=dict(os.environ)))
    try:
        for name in lock["facts"][LOADED].get("imports", ()):
            load(name)
    except Exception as error:  # whatever a broken installation raises
        raise FactError(
            f"what a program imports fails: {type(error).__name__}: {clean(str(error))[:200]}",
            hint="try it where the lockfile was captured",
        ) from None
    report = check_process(lock, live, None)
    found = report.findings if report is not None else ()
    return [each.to_json() for each in found if each.where.fact.startswith(f"{LOADED}.")]


def list_files(epoch: int) -> Dict[str, List[object]]:
    """Return every path in the image that a build has written, which is recognised by its time:
    mode, owner, and content.
    """
    device = os.lstat("/").st_dev
    found = {}
    for folder, folders, names in os.walk("/"):
        paths = [folder] + [os.path.join(folder, name) for name in names]
        entered = []
        for name in folders:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                paths.append(path)
            # Neither /proc nor other mounts.
            if os.lstat(path).st_dev == device:
                entered.append(name)
        # `os.walk` enters the folders that are left in this list, without links.
        folders[:] = entered
        for path in paths:
            status = os.lstat(path)
            if status.st_mtime_ns == epoch * 10**9 and status.st_dev == device:
                identity = identify_content(path, status.st_mode)
                found[path] = [status.st_mode, status.st_uid, status.st_gid, identity]
    return found


def identify_content(path: str, mode: int) -> str:
    """Return the SHA-256 of a file's bytes, or a link's target; empty for files without content."""
    if stat.S_ISLNK(mode):
        return os.readlink(path)
    if not stat.S_ISREG(mode):
        return ""
    try:
        return hash_file(path)
    except OSError as error:
        return str(error.strerror)
