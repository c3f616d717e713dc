"""Install into a folder a layer, in a stage of its own: `install.py EPOCH STEP ARGS...`

    apt                      the Debian packages in /wheels/apt, by their hashes; none of the base is replaced
    venv isolated|system     the virtual environment, empty: alone, or over the base's own packages
    account USER FOLDER...   a name for the user, and folders that whoever runs it may write
    wheels LAYER MODE        the wheels of a layer, which are in /wheels/LAYER; over a base, those that it has not
    runtime                  the runtime half, and its bytecode for every Python of the image

Each step fills /layers/NAME with what goes into the image, as if that folder were its root, and gives everything in it
one time; no package of the base is replaced or removed. The rest of the stage is thrown away.
Runs under whatever Python 3.6 or newer the base has; standard library only.
"""

import glob
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from typing import Dict, List, Optional, Tuple

HOME = "/opt/envlock"
VENV = "/opt/venv"
WHEELS = "/wheels"
LAYERS = "/layers"
PTH = "zzz_envlock.pth"
"""The last in its folder, so that the runtime half comes last on the path."""

ONLY_HERE = ("install.py", "donor.py", "unpack.py")
"""Programs of the build, which the image does not need."""

USER_HOME = "/home/user"
NEEDS = "/usr/local/lib/python-needs"
LOADER = ("/etc/ld.so.conf.d/zzz-envlock.conf", "/etc/ld.so.cache")

DPKG = "/var/lib/dpkg/"
PASSING = (
    *(
        "/dev",
        "/proc",
        "/run",
        "/sys",
        "/tmp",
        "/var/cache",
        "/var/lib/apt",
        "/var/log",
        "/var/tmp",
    ),
    *(HOME, LAYERS, WHEELS, "/etc/machine-id", "/var/lib/dbus/machine-id"),
    *(DPKG + "lock", DPKG + "lock-frontend", DPKG + "triggers/Lock"),
)
"""What the scripts of Debian packages leave that is no part of them: logs, caches, what is of one machine."""

OLDEST = (3, 8)
"""Of Python, for the runtime half."""

ASK = (
    "import json, os, site, sys; "
    "print(json.dumps([sys.version_info[:2], sys.prefix, site.getsitepackages(), os.path.realpath(sys.executable)]))"
)


def main(argv: List[str]) -> int:
    """Run a step; return the exit code."""
    epoch, step = int(argv[0]), argv[1]
    os.umask(0o022)
    os.environ.update(
        PYTHONDONTWRITEBYTECODE="1", PYTHONHASHSEED="0"
    )  # the order of a set goes into bytecode
    if step == "apt":
        layer = apt(epoch)
    elif step == "venv":
        layer = virtual_environment(argv[2])
    elif step == "account":
        layer = account(argv[2], argv[3:])
    elif step == "wheels":
        layer = wheels(argv[2], argv[3])
    else:
        layer = runtime()
    settle(layer, epoch)
    return 0


def apt(epoch: int) -> str:
    """Install Debian packages, and keep each file that this makes or changes; return the layer's folder."""
    layer, place = os.path.join(LAYERS, "apt"), os.path.join(WHEELS, "apt")
    os.makedirs(layer)
    with open(os.path.join(place, "packages.txt"), encoding="ascii") as stream:
        rows = [line.split() for line in stream]
    for name, architecture, _, sha256 in rows:
        with open(os.path.join(place, "{}_{}.deb".format(name, architecture)), "rb") as content:
            if hashlib.sha256(content.read()).hexdigest() != sha256:
                fail("the Debian package {} is not the locked one".format(name))
    before = files_of_the_system()
    command = ["apt-get", "-qq", "-y", "--no-install-recommends", "--no-remove"]
    command += [
        "-o",
        "Dir::Etc::SourceList=/dev/null",
        "-o",
        "Dir::Etc::SourceParts=/dev/null",
        "-o",
        "Dpkg::Use-Pty=0",
    ]
    command += [
        "install",
        *(os.path.join(place, "{}_{}.deb".format(row[0], row[1])) for row in rows),
    ]
    environ = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LC_ALL": "C",
    }
    run(command, {**environ, "DEBIAN_FRONTEND": "noninteractive", "SOURCE_DATE_EPOCH": str(epoch)})
    asked = [
        "dpkg-query",
        "-W",
        "-f",
        "${Package} ${Architecture} ${Version} ${db:Status-Status}\n",
    ]
    has = subprocess.check_output(asked).decode("ascii").splitlines()
    for row in rows:
        if " ".join([*row[:3], "installed"]) not in has:
            fail("{} {} was not installed".format(row[0], row[2]))
    after = files_of_the_system()
    for path in sorted(before.keys() - after.keys()):
        fail(
            "the scripts of the Debian packages remove {} of the base; put them into a base of your own".format(
                path
            )
        )
    for path in sorted(after):
        if after[path] != before.get(path):
            keep(path, layer)
    return layer


def files_of_the_system() -> Dict[str, Tuple[int, ...]]:
    """Return what tells of each file whether it was changed."""
    found = {}  # type: Dict[str, Tuple[int, ...]]
    for folder, folders, names in os.walk("/"):
        folders[:] = [
            name
            for name in folders
            if os.path.join(folder, name) not in PASSING and name != "__pycache__"
        ]
        for path in (os.path.join(folder, name) for name in folders + names):
            if path in PASSING or (path.startswith(DPKG) and path.endswith("-old")):
                continue
            status = os.lstat(path)
            found[path] = (status.st_mode, status.st_uid, status.st_gid)
            if not stat.S_ISDIR(status.st_mode):
                found[path] += (status.st_size, status.st_ctime_ns)
    return found


def keep(path: str, layer: str) -> None:
    """Copy a file, link or folder into a layer's folder, with its owner and mode."""
    shape(os.path.dirname(path), layer)
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(path), layer + path)
    elif stat.S_ISDIR(status.st_mode):
        shape(path, layer)
    elif stat.S_ISREG(status.st_mode):
        shutil.copyfile(path, layer + path)
        give_owner(path, layer)
    else:
        fail("{} is a special file, which no layer can hold".format(path))


def virtual_environment(mode: str) -> str:
    """Make the virtual environment, and let the loader find what its Python needs; return the layer's folder."""
    if os.path.lexists(VENV):
        fail("the base has {} already; build on the base of that image instead".format(VENV))
    layer = os.path.join(LAYERS, "venv")
    os.makedirs(layer)
    if os.path.isdir(NEEDS):
        with open(LOADER[0], "w", encoding="ascii") as stream:
            stream.write(NEEDS + "\n")  # after all of the base's own
        run(["ldconfig"])
        for path in LOADER:
            place(path, layer)
    options = ["--system-site-packages"] if mode == "system" else []
    run([sys.executable, "-B", "-m", "venv", "--without-pip", *options, VENV])
    for script in glob.glob(os.path.join(VENV, "bin", "*ctivate*")):
        os.unlink(script)  # nobody activates it: PATH is the image's
    shutil.copytree(VENV, layer + VENV, symlinks=True)
    return layer


def account(user: str, folders: List[str]) -> str:
    """Give the user and its group names where they have none, and make its folders; return the layer's folder."""
    layer = os.path.join(LAYERS, "account")
    os.makedirs(layer)
    number, group = user.split(":")
    add("/etc/group", 2, group, "{}:x:%s:" % group, layer)
    add("/etc/passwd", 2, number, "{}:x:%s:%s::%s:/bin/sh" % (number, group, USER_HOME), layer)
    for folder in folders:
        if os.path.realpath(folder) != folder:
            fail("{} is a link in the base; name another `workdir`".format(folder))
        os.makedirs(folder, exist_ok=True)
        shape(folder, layer)
        os.chmod(layer + folder, 0o1777)  # `docker run --user` may name anybody
    return layer


def add(path: str, at: int, number: str, line: str, layer: str) -> None:
    """Add a line for a number to a list of names, unless it has one."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            text = stream.read()
    except FileNotFoundError:
        text = ""
    rows = [row.split(":") for row in text.splitlines()]
    if any(row[at : at + 1] == [number] for row in rows):
        return
    name = "user" if not any(row[0] == "user" for row in rows) else "user" + number
    with open(path, "a", encoding="utf-8") as stream:
        stream.write(("\n" if text and not text.endswith("\n") else "") + line.format(name) + "\n")
    place(path, layer)


def wheels(name: str, mode: str) -> str:
    """Install the wheels of a layer, by hash; return the layer's folder."""
    layer = os.path.join(LAYERS, name)
    os.makedirs(layer)
    lines = requirements(name, mode)
    if lines:
        install(lines, name, layer)
    compiled = layer + VENV
    if os.path.isdir(compiled) and sys.version_info >= (3, 7):  # 3.6 has no bytecode without times
        command = compiler(os.path.join(VENV, "bin", "python"), compiled, VENV, "checked-hash")
        subprocess.call(
            [*command, "-q"]
        )  # a file of a wheel may be no valid Python: nobody imports it
    return layer


def runtime() -> str:
    """Let every Python find the runtime half, compiled for it; return the layer's folder."""
    layer = os.path.join(LAYERS, "runtime")
    os.makedirs(layer)
    for folder in [
        path for path, folders, _ in os.walk(HOME) if os.path.basename(path) == "__pycache__"
    ]:
        shutil.rmtree(folder)
    for python, folders in interpreters():
        enter(python, folders, layer)
    write_down()
    shutil.copytree(HOME, layer + HOME, ignore=shutil.ignore_patterns(*ONLY_HERE))
    for path, _, names in os.walk(layer + HOME):  # a checkout has the modes of whoever made it
        os.chmod(path, 0o755)
        for name in names:
            os.chmod(os.path.join(path, name), 0o644)
    return layer


def place(path: str, layer: str) -> None:
    """Copy a file into a layer's folder, below folders with the modes that they have here."""
    path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    shape(os.path.dirname(path), layer)
    shutil.copy(path, layer + path)


def shape(folder: str, layer: str) -> None:
    """Make a folder in a layer's, with the modes that it and those above it have here."""
    if folder == "/" or os.path.isdir(layer + folder):
        return
    shape(os.path.dirname(folder), layer)
    os.mkdir(layer + folder)
    give_owner(folder, layer)


def give_owner(path: str, layer: str) -> None:
    """Give a file in a layer's folder the owner and the mode that it has here."""
    status = os.lstat(path)
    os.chown(layer + path, status.st_uid, status.st_gid)
    os.chmod(layer + path, stat.S_IMODE(status.st_mode))


def settle(root: str, epoch: int) -> None:
    """Give everything in a folder one time, so that its layer is the same whenever the step runs again."""
    for folder, folders, files in os.walk(root, topdown=False):
        for name in folders + files:
            os.utime(os.path.join(folder, name), (epoch, epoch), follow_symlinks=False)
    os.utime(root, (epoch, epoch))


def fail(sentence: str) -> None:
    """End the build."""
    sys.stderr.write("envlock: " + sentence + "\n")
    sys.exit(1)


def distributions() -> Dict[str, str]:
    """Return {name: version} of what the base's own Python finds."""
    found = {}  # type: Dict[str, str]
    for folder in sys.path[1:]:
        for info in sorted(glob.glob(os.path.join(glob.escape(folder), "*.dist-info"))):
            name, _, version = os.path.basename(info)[: -len(".dist-info")].partition("-")
            found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), version)
    return found


def is_protected(name: str) -> bool:
    """Return whether it may be NVIDIA's."""
    return name.startswith(("tensorflow", "nvidia-")) or name == "tensorrt"


def requirements(name: str, mode: str) -> List[str]:
    """Return the lines of a layer's requirements.txt to install: over a base, only those that it has not."""
    with open(os.path.join(WHEELS, name, "requirements.txt"), encoding="ascii") as stream:
        lines = [line.strip() for line in stream if line.strip()]
    if mode == "isolated":
        return lines
    has = distributions()
    wanted = []
    for line in lines:
        package, _, version = line.partition(" ")[0].partition("==")
        there = has.get(package)
        if there is not None and is_protected(package) and there != version:
            sys.stderr.write("envlock: {} stays at {}, as the base has it\n".format(package, there))
        elif there != version:
            wanted.append(line)
    return wanted


def install(lines: List[str], name: str, layer: str) -> None:
    """Install by hash, from the wheels of a layer alone, as if its folder were the root."""
    chosen = os.path.join("/tmp", "envlock-requirements")
    with open(chosen, "w", encoding="ascii") as stream:
        stream.write("\n".join(lines) + "\n")
    python, folder, program = os.path.join(VENV, "bin", "python"), os.path.join(WHEELS, name), pip()
    if program is None:
        run([python, "-B", os.path.join(HOME, "unpack.py"), layer, chosen, folder])
        os.unlink(chosen)
        return
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "PYTHONPATH"))
    }
    environ.update(PIP_CONFIG_FILE=os.devnull, PIP_ROOT_USER_ACTION="ignore", PYTHONPATH=program)
    argv = [python, "-B", "-m", "pip", "install", "--quiet", "--ignore-installed"]
    argv += ["--no-index", "--find-links", folder, "--require-hashes", "--no-deps"]
    argv += [
        "--no-compile",
        "--no-cache-dir",
        "--no-warn-script-location",
        "--disable-pip-version-check",
    ]
    run([*argv, "--root", layer, "-r", chosen], environ)
    os.unlink(chosen)


def run(argv: List[str], environ: Optional[Dict[str, str]] = None) -> None:
    """Run a program, or end the build."""
    code = subprocess.call(argv, env=environ)
    if code:
        fail("`{}` failed with exit code {}".format(" ".join(argv[:5]), code))


def pip() -> Optional[str]:
    """Return what `-m pip` needs on the path: the locked pip's wheel, else the base's pip, else its spare one.

    None where there is none, or where it cannot run: before Python 3.10 it needs all of distutils, which Debian and
    Ubuntu have in a package of its own.
    """
    import importlib.util

    if sys.version_info < (3, 10) and importlib.util.find_spec("distutils.cmd") is None:
        return None
    locked = sorted(glob.glob(os.path.join(WHEELS, "pip", "pip-*.whl")))
    if locked:
        return locked[-1]
    found = importlib.util.find_spec("pip")
    if found is not None and found.origin:
        return os.path.dirname(os.path.dirname(found.origin))
    spare = glob.glob("/usr/share/python-wheels/pip-*.whl")
    try:
        import ensurepip

        spare += glob.glob(
            os.path.join(os.path.dirname(ensurepip.__file__), "_bundled", "pip-*.whl")
        )
    except ImportError:
        pass
    return max(spare, default=None)


def interpreters() -> List[Tuple[str, List[str]]]:
    """Return (program, folders for its packages) of every Python of the image that the runtime half can run on."""
    folders = [os.path.join(VENV, "bin"), *os.environ.get("PATH", os.defpath).split(os.pathsep)]
    names = ["python", "python3"] + ["python3.{}".format(minor) for minor in range(OLDEST[1], 30)]
    candidates = [os.path.join(folder, name) for folder in folders for name in names]
    found = {}  # type: Dict[Tuple[str, str], Tuple[str, List[str]]]
    for program in candidates:
        if not os.access(program, os.X_OK):
            continue
        try:
            answer = subprocess.check_output([program, "-B", "-c", ASK], stderr=subprocess.DEVNULL)
            version, prefix, places, real = json.loads(answer.decode("ascii"))
        except (OSError, ValueError, subprocess.CalledProcessError):
            continue
        if tuple(version) >= OLDEST:
            found.setdefault((prefix, real), (program, places))
    return [found[key] for key in sorted(found)]


def enter(python: str, folders: List[str], layer: str) -> None:
    """Let a Python find the runtime half, after everything else, and compile it for that Python."""
    places = [folder for folder in folders if os.path.isdir(folder)] or folders[:1]
    has = subprocess.check_output([python, "-B", "-c", "import sys; print(chr(10).join(sys.path))"])
    if HOME not in has.decode("utf-8", "surrogateescape").split(
        "\n"
    ):  # a virtual environment sees the base's
        os.makedirs(places[-1], exist_ok=True)
        with open(os.path.join(places[-1], PTH), "w", encoding="ascii") as stream:
            stream.write(HOME + "\n")
        place(os.path.join(places[-1], PTH), layer)
    own = os.path.join(HOME, "envlock")
    run(compiler(python, own, own, "unchecked-hash"))
    run([python, "-B", "-c", "import envlock.runtime.assertion"])


def write_down() -> None:
    """Let the Python that will verify the image write down which files of the base contradict their RECORDs."""
    own = os.path.join(VENV, "bin", "python")
    python = own if os.path.exists(own) else "python3"
    ask = "import sys; sys.exit(sys.version_info < {!r})".format(OLDEST)
    if (
        subprocess.call([python, "-B", "-c", ask]) == 0
    ):  # with an older one, nothing will be verified
        run([python, "-B", "-c", "from envlock.runtime.files.deep import write_down; write_down()"])


def compiler(python: str, folder: str, there: str, mode: str) -> List[str]:
    """Return the command that compiles the sources in a folder, which will be `there`, by hash: no time goes in."""
    return [
        python,
        "-B",
        "-m",
        "compileall",
        "-q",
        "--invalidation-mode",
        mode,
        "-d",
        there,
        folder,
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
