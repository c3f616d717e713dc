"""Copy the Python of an image for another one, with the libraries that it is linked to.

    donor.py EPOCH

Fills /layers/python, as if that folder were the other image's root: all of /usr/local, and in
`python-needs` the libraries that do not belong to glibc. Everything in it gets one time, which goes
into the layer.

Runs in a stage of its own, on Python 3.6 or newer; standard library only.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
from typing import Set

PLACE = "/usr/local"
LAYER = "/layers/python"
NEEDS = LAYER + PLACE + "/lib/python-needs"

GLIBC = re.compile(
    r"(ld-linux|libc|libm|libdl|libpthread|librt|libutil|libgcc_s|libstdc\+\+|libpython)"
    r"[-.0-9a-z_]*\.so"
)
"""The libraries that every CUDA base has in its own version, and Python's own library, which is in
/usr/local.
"""


def main(epoch: int) -> int:
    """Copy the Python; return the exit code."""
    os.umask(0o022)
    shutil.copytree(PLACE, LAYER + PLACE, symlinks=True)
    os.mkdir(NEEDS)
    for path in sorted(find_libraries()):
        shutil.copy(path, NEEDS)
    for folder, folders, files in os.walk(LAYER, topdown=False):
        for name in folders + files:
            os.utime(os.path.join(folder, name), (epoch, epoch), follow_symlinks=False)
    return 0


def find_libraries() -> Set[str]:
    """Return the files that the interpreter and its modules are linked to, without those that every
    base has.
    """
    linked = [PLACE + "/bin/python3", *glob.glob(PLACE + "/lib/python3*/lib-dynload/*.so")]
    lines = subprocess.check_output(["ldd", *linked]).decode("utf-8", "replace").split("\n")
    found = set()
    for line in lines:
        words = line.split()
        # For example `libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f...)`.
        if words[1:2] != ["=>"] or not words[2].startswith("/"):
            continue
        if GLIBC.match(os.path.basename(words[2])) is None:
            found.add(words[2])
    return found


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
