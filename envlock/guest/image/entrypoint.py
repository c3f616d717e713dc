"""Refuse to start in an environment other than the locked one: `entrypoint.py [CMD ARGS...]`

Verifies against /opt/envlock/envlock.lock (or $ENVLOCK_LOCK), then becomes the command. If the
environment is not the locked one, it prints one line to stderr and exits with a code from the
README's table. `ENVLOCK_MODE=deep` also hashes every installed file, `ENVLOCK_MODE=warn` starts the
command anyway, `ENVLOCK_MODE=off` does not verify. The command `envlock verify [--deep]` prints the
whole report.

`entrypoint.py --facts` prints the facts as JSON instead, `--deep` the facts and the problems of
installed files, `--files EPOCH` every file with that time.

Runs inside the image, on Python 3.8 or newer; standard library only. Modules are imported in the
functions that use them: the runtime half is found only when `main` has set the path, and every
start of a container waits for the rest.
"""

from __future__ import annotations

import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Mapping

    from envlock.runtime.errors import EnvlockError
    from envlock.runtime.host import Host

HOME = os.path.dirname(os.path.abspath(__file__))
LOCK = os.path.join(HOME, "envlock.lock")
UNSET = os.path.join(HOME, "unset.json")

BUG = 70
NO_COMMAND = 127


def main(argv: List[str]) -> int:
    """Return the exit code; does not return if the process becomes a command."""
    # Appended, so that no module of envlock goes before the environment's own.
    sys.path[:] = [folder for folder in sys.path if folder != HOME] + [HOME]
    extra = find_base_variables(os.environ)
    for name in extra:
        del os.environ[name]
    # This interpreter has already obeyed such a variable, so it is started again without it.
    if any(name.startswith("PYTHON") for name in extra):
        os.execv(sys.executable, [sys.executable, "-B", os.path.abspath(__file__), *argv])
    if argv[:1] in (["--facts"], ["--deep"]):
        return print_facts(with_files=argv[0] == "--deep")
    if argv[:1] == ["--files"]:
        return print_json(list_files(int(argv[1])))
    if argv[:1] == ["envlock"]:
        # The command verifies the environment itself, and prints more.
        from envlock.fleet import command

        return command.main(argv[1:])
    code = verify_environment()
    if code or not argv:
        return code
    return run_command(argv)


def find_base_variables(environ: Mapping[str, str]) -> List[str]:
    """Return the variables that only the base has set.

    A value that differs from the base's own was set on purpose: it is kept, and compared.
    """
    # Importing `json` would take 8 ms.
    from envlock.runtime import strict_json

    try:
        with open(UNSET, "rb") as stream:
            unset = strict_json.parse(stream.read())
    except FileNotFoundError:
        return []
    return [name for name, value in unset.items() if environ.get(name) == value]


def make_host() -> Host:
    """Return this machine as the command will see it: started with the remaining variables."""
    from envlock.runtime.host import Host

    return Host(started_with=dict(os.environ))


def verify_environment() -> int:
    """Return 0 if this is the locked environment, else the exit code for the reason."""
    from envlock.runtime import assertion, errors, image, lockfile

    try:
        mode = assertion.mode_of_process()
        if mode == "off":
            assertion.say("warning: ENVLOCK_MODE=off, the environment is not verified")
            return 0
        lock = lockfile.read_file(os.environ.get("ENVLOCK_LOCK") or LOCK)
        report = image.verify_image(
            lock, os.environ.get("ENVLOCK_POLICY") or None, deep=mode == "deep", host=make_host()
        )
        if report.match:
            return 0
        if mode in assertion.ENFORCING:
            assertion.say("refusing to start: " + image.in_one_line(report))
            return report.exit_code
        assertion.say(
            "warning: ENVLOCK_MODE=warn, so this does not stop the program: "
            + image.in_one_line(report)
        )
    except errors.EnvlockError as error:
        assertion.say("refusing to start: " + explain(error))
        return error.exit_code
    except Exception as error:
        # Imported here: only a bug needs it.
        import traceback

        traceback.print_exc()
        sys.stderr.write("envlock: this is a bug in envlock: {}\n".format(error))
        return BUG
    return 0


def explain(error: EnvlockError) -> str:
    """Return what is wrong, and what to do, in one line."""
    if error.hint:
        return "{} ({})".format(error.message, error.hint)
    return error.message


def run_command(argv: List[str]) -> int:
    """Become the command in this process; return the exit code if that fails."""
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write("envlock: cannot run `{}`: {}\n".format(argv[0], error.strerror))
        return NO_COMMAND


def print_json(answer: object) -> int:
    """Print an answer; return the exit code."""
    # Imported here: the start of a container does not need it.
    import json

    json.dump(answer, sys.stdout)
    return 0


def print_facts(*, with_files: bool) -> int:
    """Print the facts, see `collect_facts`; return the exit code."""
    from envlock.runtime import assertion, errors

    try:
        answer = collect_facts(with_files=with_files)
    except errors.EnvlockError as error:
        assertion.say(explain(error))
        return error.exit_code
    return print_json(answer)


def collect_facts(*, with_files: bool) -> List[object]:
    """Return the facts, and those that could not be collected.

    With `with_files`, also what is wrong with the installed files.

    Raises:
        LockfileError: the lockfile is not valid; or there is none, by which files are judged.
    """
    from envlock.runtime import collectors, judgement, lockfile
    from envlock.runtime.files import deep

    if not with_files and not os.path.isfile(LOCK):
        # The facts as they are here: there is no lockfile whose origins could be restored.
        here = collectors.take_snapshot(make_host())
        return [here.facts, here.unavailable]
    lock = lockfile.read_file(LOCK)
    found = judgement.collect_here(lock, make_host())
    answer = [found.facts, found.unavailable]  # type: List[object]
    if with_files:
        findings = deep.verify_files(lock)
        answer.append([finding.to_json() for finding in findings])
    return answer


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
    # Imported here: only `--files` needs it.
    import hashlib

    if stat.S_ISLNK(mode):
        return os.readlink(path)
    if not stat.S_ISREG(mode):
        return ""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as stream:
            for chunk in iter(lambda: stream.read(1 << 20), b""):
                digest.update(chunk)
    except OSError as error:
        return str(error.strerror)
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
