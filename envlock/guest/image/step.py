"""Run one step of a build, then give everything it has touched one fixed time: `step.py EPOCH SCRIPT ARGS...`

So that the layer is the same whenever and wherever the step runs again. What the step touched is what the kernel says
has changed since it began (ctime); mount points of the builder's own, such as /etc/hosts, were touched before it, so
a folder that holds one counts as touched as well.

Runs inside the image, under whatever Python 3.6 or newer the base has; standard library only.
"""

import os
import subprocess
import sys
import tempfile
from typing import List, Optional


def main(epoch: int, argv: List[str]) -> int:
    """Return the exit code of the step, whose traces of time are gone when it is 0."""
    device = os.lstat("/").st_dev
    begin = now()
    environ = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PYTHONHASHSEED="0")
    code = subprocess.call([sys.executable, "-B", *argv], env=environ)
    if code == 0:
        settle(epoch, begin, device)
    return code


def now() -> int:
    """Return the file system's own clock, which is what it stamps with."""
    handle, name = tempfile.mkstemp(dir="/tmp")
    os.close(handle)
    begin = os.lstat(name).st_ctime_ns
    os.unlink(name)
    return begin


def settle(epoch: int, begin: int, device: int, root: str = "/") -> None:
    """Give every file and folder of `device` that has changed since `begin` the time `epoch`."""
    for folder, folders, files in os.walk(root, topdown=True):
        states = [(name, state(os.path.join(folder, name))) for name in folders + files]
        foreign = {name for name, found in states if found is None or found.st_dev != device}
        links = {name for name in folders if os.path.islink(os.path.join(folder, name))}
        folders[:] = sorted(name for name in folders if name not in foreign and name not in links)
        own = state(folder)
        if own is not None and (own.st_ctime_ns >= begin or foreign):
            stamp(folder, epoch)
        for name, found in states:
            if found is not None and name not in foreign and name not in folders and found.st_ctime_ns >= begin:
                stamp(os.path.join(folder, name), epoch)


def state(path: str) -> Optional[os.stat_result]:
    """Return what the file system knows of a path; None where it has gone meanwhile."""
    try:
        return os.lstat(path)
    except OSError:
        return None


def stamp(path: str, epoch: int) -> None:
    """Set a path's time; a mount of the builder's may be read-only, and is in no layer."""
    try:
        os.utime(path, (epoch, epoch), follow_symlinks=False)
    except OSError as error:
        sys.stderr.write("envlock: {}: {}\n".format(path, error.strerror))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
