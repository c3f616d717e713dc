"""Install the content of a layer into a folder, in a build stage of its own: `install.py EPOCH STEP
ARGS...`

    apt                      the Debian packages in /wheels/apt, by their hashes; no package of the base is replaced
    venv isolated|system     the virtual environment, empty: alone, or over the base's own packages
    account USER FOLDER...   a name for the user, and folders that whoever runs it may write
    wheels LAYER MODE        the wheels of a layer, which are in /wheels/LAYER; over a base, those that it lacks
    runtime                  the runtime half, and its bytecode for every Python of the image
    lock                     the lockfile, in which the files of Python and of the C library are those of the image

Each step fills /layers/NAME with the files for the image, as if that folder were its root, and sets
all their times to one value; no package of the base is replaced or removed. The rest of the stage
is not used. Runs with any Python 3.6 or newer in the base; standard library only.
"""

import glob
import hashlib
import importlib.util
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from typing import Dict, List, Optional, Tuple

HOME = "/opt/envlock"
VENV = "/opt/venv"
WHEELS = "/wheels"
LAYERS = "/layers"
PTH = "zzz_envlock.pth"
"""The last .pth file in its folder, so that the runtime half comes last on the path."""

ONLY_HERE = ("install.py", "donor.py", "unpack.py")
"""Programs for the build, which the image does not need."""
LOCK = ("envlock.lock", "unset.json")

USER_HOME = "/home/user"
NEEDS = "/usr/local/lib/python-needs"
"""Libraries that the Python from another image needs; donor.py fills the folder."""
LOADER = ("/etc/ld.so.conf.d/zzz-envlock.conf", "/etc/ld.so.cache")
"""The list of folders that the loader searches after those of the base, because of its name, and
its cache.
"""

DPKG = "/var/lib/dpkg/"
PASSING = (
    "/dev",
    "/proc",
    "/run",
    "/sys",
    "/tmp",
    "/var/cache",
    "/var/lib/apt",
    "/var/log",
    "/var/tmp",
    HOME,
    LAYERS,
    WHEELS,
    "/etc/machine-id",
    "/var/lib/dbus/machine-id",
    DPKG + "lock",
    DPKG + "lock-frontend",
    DPKG + "triggers/Lock",
)
"""Paths that the scripts of Debian packages change and that do not belong to a package: logs,
caches, files of one machine.
"""

OLDEST = (3, 8)
"""The oldest Python for the runtime half."""

ASK = (
    "import json, os, site, sys; "
    "print(json.dumps([sys.version_info[:2], sys.prefix, site.getsitepackages(), "
    "os.path.realpath(sys.executable)]))"
)
"""A program that prints version, prefix, folders for packages and real path of its interpreter."""
APT = (
    "apt-get",
    "-qq",
    "-y",
    "--no-install-recommends",
    "--no-remove",
    "-o",
    "Dir::Etc::SourceList=/dev/null",
    "-o",
    "Dir::Etc::SourceParts=/dev/null",
    "-o",
    "Dpkg::Use-Pty=0",
    "install",
)
"""The command that installs Debian packages from files, without a network."""
DPKG_QUERY = (
    "dpkg-query",
    "-W",
    "-f",
    "${Package} ${Architecture} ${Version} ${db:Status-Status}\n",
)
PIP = (
    "-m",
    "pip",
    "install",
    "--quiet",
    "--ignore-installed",
    "--no-index",
    "--require-hashes",
    "--no-deps",
    "--no-compile",
    "--no-cache-dir",
    "--no-warn-script-location",
    "--disable-pip-version-check",
)
"""The options with which pip installs wheels from a folder by their hashes, without an index or a
cache.
"""


def main(argv: List[str]) -> int:
    """Run a step; return the exit code."""
    epoch, step = int(argv[0]), argv[1]
    os.umask(0o022)
    # The order of a set becomes part of bytecode, so the hash seed is fixed.
    os.environ.update(PYTHONDONTWRITEBYTECODE="1", PYTHONHASHSEED="0")
    if step == "apt":
        layer = install_debian_packages(epoch)
    elif step == "venv":
        layer = make_virtual_environment(argv[2])
    elif step == "account":
        layer = make_account(argv[2], argv[3:])
    elif step == "wheels":
        layer = install_wheels(argv[2], argv[3])
    elif step == "lock":
        layer = install_lock()
    else:
        layer = install_runtime()
    settle(layer, epoch)
    return 0


def install_debian_packages(epoch: int) -> str:
    """Install Debian packages, and copy each file that this creates or changes; return the layer's
    folder.
    """
    layer, folder = os.path.join(LAYERS, "apt"), os.path.join(WHEELS, "apt")
    os.makedirs(layer)
    with open(os.path.join(folder, "packages.txt"), encoding="ascii") as stream:
        rows = [line.split() for line in stream]
    archives = []
    for name, architecture, _, sha256 in rows:
        archive = os.path.join(folder, "{}_{}.deb".format(name, architecture))
        with open(archive, "rb") as content:
            if hashlib.sha256(content.read()).hexdigest() != sha256:
                fail("the Debian package {} is not the locked one".format(name))
        archives.append(archive)
    before = list_files()
    environ = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LC_ALL": "C",
        "DEBIAN_FRONTEND": "noninteractive",
        "SOURCE_DATE_EPOCH": str(epoch),
    }
    run([*APT, *archives], environ)
    installed = subprocess.check_output(DPKG_QUERY).decode("ascii").splitlines()
    for name, architecture, version, _ in rows:
        if " ".join([name, architecture, version, "installed"]) not in installed:
            fail("{} {} was not installed".format(name, version))
    after = list_files()
    for path in sorted(before.keys() - after.keys()):
        fail(
            "the scripts of the Debian packages remove {} of the base; "
            "put them into a base of your own".format(path)
        )
    for path in sorted(after):
        if after[path] != before.get(path):
            keep(path, layer)
    return layer


def list_files() -> Dict[str, Tuple[int, ...]]:
    """Return the files of the stage by path, each with numbers that differ once it has changed."""
    found = {}  # type: Dict[str, Tuple[int, ...]]
    for folder, folders, names in os.walk("/"):
        # `os.walk` enters the folders that are left in this list.
        folders[:] = [name for name in folders if is_searched(folder, name)]
        for name in folders + names:
            path = os.path.join(folder, name)
            # dpkg's copies of its own files from before the last change.
            is_old_copy = path.startswith(DPKG) and path.endswith("-old")
            if path in PASSING or is_old_copy:
                continue
            status = os.lstat(path)
            found[path] = (status.st_mode, status.st_uid, status.st_gid)
            # The size and times of a folder change with its content, which is copied separately.
            if not stat.S_ISDIR(status.st_mode):
                found[path] += (status.st_size, status.st_ctime_ns)
    return found


def is_searched(folder: str, name: str) -> bool:
    """Return whether a folder inside another one can contain files of a package."""
    return os.path.join(folder, name) not in PASSING and name != "__pycache__"


def keep(path: str, layer: str) -> None:
    """Copy a file, link or folder into a layer's folder, with its owner and mode."""
    copy_folder(os.path.dirname(path), layer)
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(path), layer + path)
    elif stat.S_ISDIR(status.st_mode):
        copy_folder(path, layer)
    elif stat.S_ISREG(status.st_mode):
        shutil.copyfile(path, layer + path)
        give_owner(path, layer)
    else:
        fail("{} is a special file, which no layer can hold".format(path))


def make_virtual_environment(mode: str) -> str:
    """Create the virtual environment, and let the loader find the libraries that its Python needs;
    return the layer's folder.
    """
    if os.path.lexists(VENV):
        fail("the base has {} already; build on the base of that image instead".format(VENV))
    layer = os.path.join(LAYERS, "venv")
    os.makedirs(layer)
    if os.path.isdir(NEEDS):
        with open(LOADER[0], "w", encoding="ascii") as stream:
            stream.write(NEEDS + "\n")
        run(["ldconfig"])
        for path in LOADER:
            copy_file(path, layer)
    command = [sys.executable, "-B", "-m", "venv", "--without-pip"]
    if mode == "system":
        command.append("--system-site-packages")
    run([*command, VENV])
    # It is never activated: PATH is set in the image.
    for script in glob.glob(os.path.join(VENV, "bin", "*ctivate*")):
        os.unlink(script)
    shutil.copytree(VENV, layer + VENV, symlinks=True)
    return layer


def make_account(user: str, folders: List[str]) -> str:
    """Give the user and its group names if they have none, and create its folders; return the
    layer's folder.
    """
    layer = os.path.join(LAYERS, "account")
    os.makedirs(layer)
    number, group = user.split(":")
    add_name("/etc/group", group, "{}:x:%s:" % group, layer)
    add_name("/etc/passwd", number, "{}:x:%s:%s::%s:/bin/sh" % (number, group, USER_HOME), layer)
    for folder in folders:
        if os.path.realpath(folder) != folder:
            fail("{} is a link in the base; name another `workdir`".format(folder))
        os.makedirs(folder, exist_ok=True)
        copy_folder(folder, layer)
        # Every user may write there: `docker run --user` can name any user.
        os.chmod(layer + folder, 0o1777)
    return layer


def add_name(path: str, number: str, line: str, layer: str) -> None:
    """Add a line for a number to a list of names, unless it has one."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            text = stream.read()
    except FileNotFoundError:
        text = ""
    name = "user"
    for row in text.splitlines():
        fields = row.split(":")
        # The number is the third field in both lists.
        if fields[2:3] == [number]:
            return
        if fields[0] == "user":
            name = "user" + number
    with open(path, "a", encoding="utf-8") as stream:
        if text and not text.endswith("\n"):
            stream.write("\n")
        stream.write(line.format(name) + "\n")
    copy_file(path, layer)


def install_wheels(name: str, mode: str) -> str:
    """Install the wheels of a layer, by hash; return the layer's folder."""
    layer = os.path.join(LAYERS, name)
    os.makedirs(layer)
    lines = select_requirements(name, mode)
    if lines:
        install_lines(lines, name, layer)
        keep_winners(name, layer)
    installed = layer + VENV
    # Python 3.6 has no bytecode without times.
    if os.path.isdir(installed) and sys.version_info >= (3, 7):
        python = os.path.join(VENV, "bin", "python")
        command = get_compile_command(python, installed, VENV, "checked-hash")
        # A failure does not end the build: a file in a wheel may be invalid Python that is never
        # imported.
        subprocess.call([*command, "-q"])
    return layer


def install_runtime() -> str:
    """Make the runtime half available to every Python, compiled for it; return the layer's folder."""
    layer = os.path.join(LAYERS, "runtime")
    os.makedirs(layer)
    caches = [path for path, _, _ in os.walk(HOME) if os.path.basename(path) == "__pycache__"]
    for cache in caches:
        shutil.rmtree(cache)
    for python, folders in find_interpreters():
        add_to_path(python, folders, layer)
    write_contradictions()
    shutil.copytree(HOME, layer + HOME, ignore=shutil.ignore_patterns(*ONLY_HERE, *LOCK))
    # The files of a checkout have the modes of the user who made it.
    for path, _, names in os.walk(layer + HOME):
        os.chmod(path, 0o755)
        for name in names:
            os.chmod(os.path.join(path, name), 0o644)
    return layer


def install_lock() -> str:
    """Put what the image has of Python and of the C library into its lockfile; return the layer's folder."""
    layer = os.path.join(LAYERS, "lock")
    os.makedirs(layer)
    for name in LOCK:
        copy_file(os.path.join(HOME, name), layer)
    if sys.version_info >= OLDEST:
        command = [sys.executable, "-B", os.path.join(HOME, "entrypoint.py"), "--held"]
        answer = subprocess.check_output(command).decode("ascii").splitlines()[-1]
        with open(os.path.join(layer + HOME, LOCK[0]), "w", encoding="ascii") as stream:
            stream.write(json.dumps(json.loads(answer), indent=2, sort_keys=True) + "\n")
    return layer


def copy_file(path: str, layer: str) -> None:
    """Copy a file into a layer's folder, with the modes that its parent folders have here."""
    path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    copy_folder(os.path.dirname(path), layer)
    shutil.copy(path, layer + path)


def copy_folder(folder: str, layer: str) -> None:
    """Create an empty folder in a layer's folder, with the modes that it and its parents have here."""
    if folder == "/" or os.path.isdir(layer + folder):
        return
    copy_folder(os.path.dirname(folder), layer)
    os.mkdir(layer + folder)
    give_owner(folder, layer)


def give_owner(path: str, layer: str) -> None:
    """Give a file in a layer's folder the owner and the mode that it has here."""
    status = os.lstat(path)
    os.chown(layer + path, status.st_uid, status.st_gid)
    os.chmod(layer + path, stat.S_IMODE(status.st_mode))


def settle(root: str, epoch: int) -> None:
    """Set the times of everything in a folder to one value, so that its layer is the same whenever
    the step runs again.
    """
    for folder, folders, files in os.walk(root, topdown=False):
        for name in folders + files:
            os.utime(os.path.join(folder, name), (epoch, epoch), follow_symlinks=False)
    os.utime(root, (epoch, epoch))


def fail(sentence: str) -> None:
    """End the build with a message."""
    sys.stderr.write("envlock: " + sentence + "\n")
    sys.exit(1)


def find_distributions() -> Dict[str, str]:
    """Return {name: version} of the packages that the base's own Python finds."""
    found = {}  # type: Dict[str, str]
    for folder in sys.path[1:]:
        for info in sorted(glob.glob(os.path.join(glob.escape(folder), "*.dist-info"))):
            name, _, version = os.path.basename(info)[: -len(".dist-info")].partition("-")
            # The first on the path is the one that is imported.
            found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), version)
    return found


def is_protected(name: str) -> bool:
    """Return whether a package may be a build of NVIDIA's, which is on no index."""
    return name.startswith(("tensorflow", "nvidia-")) or name == "tensorrt"


def select_requirements(name: str, mode: str) -> List[str]:
    """Return the lines of a layer's requirements.txt to install: over a base, those of packages
    that it lacks.
    """
    with open(os.path.join(WHEELS, name, "requirements.txt"), encoding="ascii") as stream:
        lines = [line.strip() for line in stream if line.strip()]
    if mode == "isolated":
        return lines
    present = find_distributions()
    wanted = []
    for line in lines:
        package, _, version = line.partition(" ")[0].partition("==")
        base_version = present.get(package)
        if base_version == version:
            continue
        if base_version is not None and is_protected(package):
            sys.stderr.write(
                "envlock: {} stays at {}, as the base has it\n".format(package, base_version)
            )
            continue
        wanted.append(line)
    return wanted


def install_lines(lines: List[str], name: str, layer: str) -> None:
    """Install lines of requirements from the wheels of a layer alone, as if its folder were the
    root.
    """
    chosen = os.path.join("/tmp", "envlock-requirements")
    with open(chosen, "w", encoding="ascii") as stream:
        stream.write("\n".join(lines) + "\n")
    python = os.path.join(VENV, "bin", "python")
    folder = os.path.join(WHEELS, name)
    pip = find_pip()
    if pip is None:
        run([python, "-B", os.path.join(HOME, "unpack.py"), layer, chosen, folder])
    else:
        environ = dict(os.environ)
        for variable in os.environ:
            if variable.startswith(("PIP_", "PYTHONPATH")):
                del environ[variable]
        environ.update(PIP_CONFIG_FILE=os.devnull, PIP_ROOT_USER_ACTION="ignore", PYTHONPATH=pip)
        run([python, "-B", *PIP, "--find-links", folder, "--root", layer, "-r", chosen], environ)
    os.unlink(chosen)


def keep_winners(name: str, layer: str) -> None:
    """Give each file that two packages install the content that it has in the locked environment,
    whichever was installed last here; remove it if a package of another layer brings it.
    """
    folder = os.path.join(WHEELS, name)
    try:
        with open(os.path.join(folder, "overwritten.json"), encoding="ascii") as stream:
            winners = json.load(stream)
    except FileNotFoundError:
        return
    answer = ask_interpreter(os.path.join(VENV, "bin", "python"))
    if answer is None:
        fail("the Python of the image gives no answer")
        return
    for path, wheel in sorted(winners.items()):
        for place in [layer + os.path.join(site, path) for site in answer[2]]:
            if not os.path.exists(place):
                continue
            if wheel is None:
                os.unlink(place)
                continue
            with zipfile.ZipFile(os.path.join(folder, wheel)) as archive:
                inside = [each for each in archive.namelist() if is_installed_as(each, path)]
                content = archive.read(inside[0])
            with open(place, "wb") as target:
                target.write(content)


def is_installed_as(name: str, path: str) -> bool:
    """Return whether a file in a wheel is installed at a path in `site-packages`."""
    folders = name.split("/", 2)
    is_moved = folders[0].endswith(".data") and folders[1:2] in (["purelib"], ["platlib"])
    return (folders[-1] if is_moved else name) == path


def run(argv: List[str], environ: Optional[Dict[str, str]] = None) -> None:
    """Run a program, or end the build."""
    code = subprocess.call(argv, env=environ)
    if code:
        fail("`{}` failed with exit code {}".format(" ".join(argv[:5]), code))


def find_pip() -> Optional[str]:
    """Return the path from which `-m pip` runs: that of the locked pip's wheel, else of the base's
    pip, else of its bundled one.

    None if there is no pip, or it cannot run: before Python 3.10 it needs all of distutils, which
    is a separate package in Debian and Ubuntu.
    """
    if sys.version_info < (3, 10) and importlib.util.find_spec("distutils.cmd") is None:
        return None
    locked = sorted(glob.glob(os.path.join(WHEELS, "pip", "pip-*.whl")))
    if locked:
        return locked[-1]
    spec = importlib.util.find_spec("pip")
    if spec is not None and spec.origin:
        return os.path.dirname(os.path.dirname(spec.origin))
    spare = glob.glob("/usr/share/python-wheels/pip-*.whl")
    ensurepip = importlib.util.find_spec("ensurepip")
    # It is a separate package in Debian and Ubuntu.
    if ensurepip is not None and ensurepip.origin:
        bundled = os.path.join(os.path.dirname(ensurepip.origin), "_bundled")
        spare += glob.glob(os.path.join(bundled, "pip-*.whl"))
    return max(spare, default=None)


def find_interpreters() -> List[Tuple[str, List[str]]]:
    """Return (program, folders for its packages) of every Python in the image that can run the
    runtime half.
    """
    folders = [os.path.join(VENV, "bin"), *os.environ.get("PATH", os.defpath).split(os.pathsep)]
    names = ["python", "python3"]
    names += ["python3.{}".format(minor) for minor in range(OLDEST[1], 30)]
    found = {}  # type: Dict[Tuple[str, str], Tuple[str, List[str]]]
    for folder in folders:
        for name in names:
            program = os.path.join(folder, name)
            if not os.access(program, os.X_OK):
                continue
            answer = ask_interpreter(program)
            if answer is None:
                continue
            version, prefix, places, real = answer
            # One interpreter has several names; the first is kept.
            if tuple(version) >= OLDEST:
                found.setdefault((prefix, real), (program, places))
    return [found[key] for key in sorted(found)]


def ask_interpreter(program: str) -> Optional[Tuple[List[int], str, List[str], str]]:
    """Return version, prefix, folders for packages and real path of an interpreter; None if it is
    not one.
    """
    try:
        answer = subprocess.check_output([program, "-B", "-c", ASK], stderr=subprocess.DEVNULL)
        version, prefix, places, real = json.loads(answer.decode("ascii"))
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None
    return version, prefix, places, real


def add_to_path(python: str, folders: List[str], layer: str) -> None:
    """Let a Python find the runtime half after everything else, and compile it for that Python."""
    places = [folder for folder in folders if os.path.isdir(folder)] or folders[:1]
    ask = "import sys; print(chr(10).join(sys.path))"
    answer = subprocess.check_output([python, "-B", "-c", ask])
    path = answer.decode("utf-8", "surrogateescape").split("\n")
    # A virtual environment also reads the folder of its base, which may already have the line.
    if HOME not in path:
        os.makedirs(places[-1], exist_ok=True)
        with open(os.path.join(places[-1], PTH), "w", encoding="ascii") as stream:
            stream.write(HOME + "\n")
        copy_file(os.path.join(places[-1], PTH), layer)
    package = os.path.join(HOME, "envlock")
    run(get_compile_command(python, package, package, "unchecked-hash"))
    run([python, "-B", "-c", "import envlock.runtime.assertion"])


def write_contradictions() -> None:
    """Let the Python that will verify the image record which files of the base contradict their
    RECORDs.
    """
    python = os.path.join(VENV, "bin", "python")
    if not os.path.exists(python):
        python = "python3"
    ask = "import sys; sys.exit(sys.version_info < {!r})".format(OLDEST)
    # With an older Python, nothing will be verified.
    if subprocess.call([python, "-B", "-c", ask]) == 0:
        run([python, "-B", "-c", "from envlock.runtime.files.deep import write_down; write_down()"])


def get_compile_command(python: str, folder: str, final: str, mode: str) -> List[str]:
    """Return the command that compiles the sources in a folder, whose later path is `final`, with
    hashes instead of times.
    """
    options = ["-q", "--invalidation-mode", mode, "-d", final]
    return [python, "-B", "-m", "compileall", *options, folder]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
