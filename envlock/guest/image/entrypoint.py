"""Refuse to start in another environment than the locked one: `entrypoint.py [CMD ARGS...]`

Verifies against /opt/envlock/envlock.lock (or $ENVLOCK_LOCK), then becomes the command. Where the environment is not
the locked one, the report goes to stderr and the exit code says why, as the README's table has it. `ENVLOCK_MODE=warn`
goes on all the same, `ENVLOCK_MODE=off` does not look.

`entrypoint.py --facts` prints what is found as JSON instead, `entrypoint.py --files EPOCH` every file of that time.

Runs inside the image, on Python 3.8 or newer; standard library only.
"""

import json
import os
import sys
from typing import Dict, List, Optional

HOME = os.path.dirname(os.path.abspath(__file__))
LOCK = os.path.join(HOME, "envlock.lock")
UNSET = os.path.join(HOME, "unset.json")

BUG = 70
NO_COMMAND = 127


def main(argv: List[str]) -> int:
    """Return the exit code; does not return when a command takes over."""
    clean = cleaned(dict(os.environ))
    if clean is not None:  # the loader and glibc look at what a process was started with, so start again
        os.execve(sys.executable, [sys.executable, "-B", os.path.abspath(__file__), *argv], clean)
    sys.path[:] = [folder for folder in sys.path if folder != HOME] + [HOME]
    if argv[:1] == ["--facts"]:
        return facts()
    if argv[:1] == ["--files"]:
        return files(int(argv[1]))
    code = verify()
    if code or not argv:
        return code
    return become(argv)


def cleaned(environ: Dict[str, str]) -> Optional[Dict[str, str]]:
    """Return the variables without those that only the base has set; None where there are none.

    A value that is not the base's own was given on purpose: it stays, and is judged.
    """
    try:
        with open(UNSET, encoding="ascii") as stream:
            unset = json.load(stream)
    except FileNotFoundError:
        return None
    extra = [name for name, value in unset.items() if environ.get(name) == value]
    return {name: value for name, value in environ.items() if name not in extra} if extra else None


def verify() -> int:
    """Return 0 when this is the locked environment, else the exit code that says why not."""
    from envlock.runtime.assertion import assert_locked
    from envlock.runtime.errors import EnvlockError

    try:
        assert_locked(os.environ.get("ENVLOCK_LOCK") or LOCK)
    except EnvlockError as error:
        sys.stderr.write("envlock: refusing to start, as this is not the locked environment\n{}\n".format(error))
        return error.exit_code
    except Exception as error:
        import traceback

        traceback.print_exc()
        sys.stderr.write("envlock: this is a bug in envlock: {}\n".format(error))
        return BUG
    return 0


def become(argv: List[str]) -> int:
    """Take the command's name and place."""
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write("envlock: cannot run `{}`: {}\n".format(argv[0], error.strerror))
        return NO_COMMAND


def facts() -> int:
    """Print what the collectors find, and what they could not."""
    from envlock.runtime.collectors import snapshot

    found = snapshot()
    json.dump([found.facts, found.unavailable], sys.stdout)
    return 0


def files(epoch: int) -> int:
    """Print every path of the image that a build has written, known by its time: mode, owner, size and SHA-256."""
    device = os.lstat("/").st_dev
    found = {}
    for folder, folders, names in os.walk("/"):
        names += [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = [name for name in folders if os.lstat(os.path.join(folder, name)).st_dev == device]
        for path in [folder] + [os.path.join(folder, name) for name in names]:
            status = os.lstat(path)
            if status.st_mtime_ns == epoch * 10**9 and status.st_dev == device:
                found[path] = [status.st_mode, status.st_uid, status.st_gid, content(path, status.st_mode)]
    json.dump(found, sys.stdout)
    return 0


def content(path: str, mode: int) -> str:
    """Return what identifies a file's bytes or a link's target."""
    import hashlib
    import stat

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
