"""Take the Python of an image for another one, with the libraries that it is linked to: `donor.py EPOCH`

Fills /layers/python, as if that folder were the other image's root: all of /usr/local, and beside it, in
`python-needs`, what is not part of every glibc. Everything in it gets one time, which goes into the layer.

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
    r"(ld-linux|libc|libm|libdl|libpthread|librt|libutil|libgcc_s|libstdc\+\+|libpython)[-.0-9a-z_]*\.so"
)
"""What every base of CUDA's has, at its own version, and Python's own library, which is in /usr/local."""


def main(epoch: int) -> int:
    """Copy; return the exit code."""
    os.umask(0o022)
    shutil.copytree(PLACE, LAYER + PLACE, symlinks=True)
    os.mkdir(NEEDS)
    for path in sorted(libraries()):
        shutil.copy(path, NEEDS)
    for folder, folders, files in os.walk(LAYER, topdown=False):
        for name in folders + files:
            os.utime(os.path.join(folder, name), (epoch, epoch), follow_symlinks=False)
    return 0


def libraries() -> Set[str]:
    """Return the files that the interpreter and its modules are linked to."""
    linked = [PLACE + "/bin/python3", *glob.glob(PLACE + "/lib/python3*/lib-dynload/*.so")]
    lines = subprocess.check_output(["ldd", *linked]).decode("utf-8", "replace").split("\n")
    found = {
        words[2]
        for words in map(str.split, lines)
        if words[1:2] == ["=>"] and words[2].startswith("/")
    }
    return {path for path in found if GLIBC.match(os.path.basename(path)) is None}


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
