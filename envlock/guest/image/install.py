"""Put the locked wheels and the runtime half into the image: `install.py none|isolated|system`

    none       no wheels: the base has everything
    isolated   a virtual environment with the wheels and nothing else
    system     a virtual environment over the base's own packages, with what the base has not

No package of the base is replaced or removed, and the build fails when one of NVIDIA's has changed all the same.
Runs inside the image, under whatever Python 3.6 or newer the base has; standard library only.
"""

import glob
import hashlib
import json
import os
import re
import subprocess
import sys
from typing import Dict, List, Optional, Tuple

HOME = "/opt/envlock"
VENV = "/opt/venv"
PTH = "zzz_envlock.pth"
"""The last in its folder, so that the runtime half comes last on the path."""

NEEDS = "/usr/local/lib/python-needs"
NOTES = "/var/cache/ldconfig/aux-cache"

OLDEST = (3, 8)
"""Of Python, for the runtime half."""

ASK = (
    "import json, os, site, sys; "
    "print(json.dumps([sys.version_info[:2], sys.prefix, site.getsitepackages(), os.path.realpath(sys.executable)]))"
)


def main(mode: str) -> int:
    """Install; return the exit code."""
    link()
    before = protected()
    if mode != "none":
        wanted = requirements(mode)
        if wanted or mode == "isolated":
            install(wanted, mode)
    pythons = interpreters()
    for python, folders in pythons:
        enter(python, folders)
    if os.path.isdir(VENV) and sys.version_info >= (3, 7):  # 3.6 has no bytecode without times
        subprocess.check_call(compiler(os.path.join(VENV, "bin", "python"), VENV, "checked-hash"))
    changed = sorted(name for name in set(before) | set(protected()) if before.get(name) != protected().get(name))
    if changed:
        fail("{} of the base changed; NVIDIA's builds are never replaced".format(", ".join(changed)))
    return 0


def link() -> None:
    """Let the loader find the libraries that a Python from another image has brought, behind all of this one's own.

    ldconfig's own notes hold inode numbers and times, so they are put back as they were.
    """
    if not os.path.isdir(NEEDS):
        return
    with open("/etc/ld.so.conf.d/zzz-envlock.conf", "w", encoding="ascii") as stream:
        stream.write(NEEDS + "\n")
    try:
        with open(NOTES, "rb") as notes:
            kept = notes.read()  # type: Optional[bytes]
    except OSError:
        kept = None
    run(["ldconfig"])
    if kept is not None:
        with open(NOTES, "wb") as notes:
            notes.write(kept)
    elif os.path.exists(NOTES):
        os.unlink(NOTES)


def fail(sentence: str) -> None:
    """End the build."""
    sys.stderr.write("envlock: " + sentence + "\n")
    sys.exit(1)


def distributions() -> Dict[str, Tuple[str, str]]:
    """Return {name: (version, metadata folder)} of what the base's own Python finds."""
    found = {}  # type: Dict[str, Tuple[str, str]]
    for folder in sys.path[1:]:
        for info in sorted(glob.glob(os.path.join(glob.escape(folder), "*.dist-info"))):
            name, _, version = os.path.basename(info)[: -len(".dist-info")].partition("-")
            found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), (version, info))
    return found


def is_protected(name: str) -> bool:
    """Return whether it may be NVIDIA's."""
    return name.startswith(("tensorflow", "nvidia-")) or name == "tensorrt"


def protected() -> Dict[str, Tuple[str, str]]:
    """Return {name: what identifies it} of the distributions that must stay as they are."""
    found = {}
    for name, (version, info) in distributions().items():
        if is_protected(name):
            try:
                with open(os.path.join(info, "RECORD"), "rb") as stream:
                    digest = hashlib.sha256(stream.read()).hexdigest()
            except OSError:
                digest = ""
            found[name] = (version, digest)
    return found


def requirements(mode: str) -> List[str]:
    """Return the lines of requirements.lock to install: over a base, only those that it has not."""
    with open(os.path.join(HOME, "requirements.lock"), encoding="ascii") as stream:
        lines = [line.strip() for line in stream if line.strip() and not line.startswith("#")]
    if mode == "isolated":
        return lines
    has = distributions()
    wanted = []
    for line in lines:
        name, _, version = line.partition(" ")[0].partition("==")
        there = has[name][0] if name in has else None
        if there is not None and is_protected(name) and there != version:
            sys.stderr.write("envlock: {} stays at {}, as the base has it\n".format(name, there))
        elif there != version:
            wanted.append(line)
    return wanted


def install(lines: List[str], mode: str) -> None:
    """Make the virtual environment and install by hash, from the wheelhouse alone, replacing nothing."""
    if os.path.lexists(VENV):
        fail("the base has {} already; build on the base of that image instead".format(VENV))
    options = ["--system-site-packages"] if mode == "system" else []
    run([sys.executable, "-B", "-m", "venv", "--without-pip", *options, VENV])
    for script in glob.glob(os.path.join(VENV, "bin", "*ctivate*")):
        os.unlink(script)  # nobody activates it: PATH is the image's
    if not lines:
        return
    chosen = os.path.join("/tmp", "envlock-requirements")
    with open(chosen, "w", encoding="ascii") as stream:
        stream.write("\n".join(lines) + "\n")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHONPATH"))}
    environ.update(PIP_CONFIG_FILE=os.devnull, PIP_ROOT_USER_ACTION="ignore", PYTHONPATH=pip())
    argv = [os.path.join(VENV, "bin", "python"), "-B", "-m", "pip", "install", "--quiet", "--ignore-installed"]
    argv += ["--no-index", "--find-links", os.path.join(HOME, "wheelhouse"), "--require-hashes", "--no-deps"]
    argv += ["--no-compile", "--no-cache-dir", "--no-warn-script-location", "--disable-pip-version-check"]
    run([*argv, "-r", chosen], environ)
    os.unlink(chosen)


def run(argv: List[str], environ: Optional[Dict[str, str]] = None) -> None:
    """Run a program, or end the build."""
    code = subprocess.call(argv, env=environ)
    if code:
        fail("`{}` failed with exit code {}".format(" ".join(argv[:5]), code))


def pip() -> str:
    """Return what `-m pip` needs on the path: the locked pip's wheel, else the base's pip, else its spare one."""
    import importlib.util

    locked = sorted(glob.glob(os.path.join(HOME, "wheelhouse", "pip-*.whl")))
    if locked:
        return locked[-1]
    found = importlib.util.find_spec("pip")
    if found is not None and found.origin:
        return os.path.dirname(os.path.dirname(found.origin))
    spare = glob.glob("/usr/share/python-wheels/pip-*.whl")
    try:
        import ensurepip

        spare += glob.glob(os.path.join(os.path.dirname(ensurepip.__file__), "_bundled", "pip-*.whl"))
    except ImportError:
        pass
    if not spare:
        fail("the base has no pip, and the wheelhouse has none: add pip to the locked environment")
    return sorted(spare)[-1]


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


def enter(python: str, folders: List[str]) -> None:
    """Let a Python find the runtime half, behind everything else, and compile it for that Python."""
    places = [folder for folder in folders if os.path.isdir(folder)] or folders[:1]
    has = subprocess.check_output([python, "-B", "-c", "import sys; print(chr(10).join(sys.path))"])
    if HOME not in has.decode("utf-8", "surrogateescape").split("\n"):  # a virtual environment sees the base's
        os.makedirs(places[-1], exist_ok=True)
        with open(os.path.join(places[-1], PTH), "w", encoding="ascii") as stream:
            stream.write(HOME + "\n")
    run(compiler(python, os.path.join(HOME, "envlock"), "unchecked-hash"))
    run([python, "-B", "-c", "import envlock.runtime.assertion"])


def compiler(python: str, folder: str, mode: str) -> List[str]:
    """Return the command that compiles the sources in a folder, by hash: no time goes into the bytecode."""
    return [python, "-B", "-m", "compileall", "-q", "--invalidation-mode", mode, folder]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
