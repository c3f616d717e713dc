"""Refuse to start in another environment than the locked one: `entrypoint.py [CMD ARGS...]`

Verifies against /opt/envlock/envlock.lock (or $ENVLOCK_LOCK), then becomes the command. Where the environment is not
the locked one, one line goes to stderr and the exit code says why, as the README's table has it. `ENVLOCK_MODE=deep`
also hashes every installed file, `ENVLOCK_MODE=warn` goes on all the same, `ENVLOCK_MODE=off` does not look.
The command `envlock verify [--deep]` prints the whole report.

`entrypoint.py --facts` prints what is found as JSON instead, `--deep` that and what is wrong with the installed files,
`--files EPOCH` every file of that time.

Runs inside the image, on Python 3.8 or newer; standard library only.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Mapping

    from envlock.runtime.host import Host

HOME = os.path.dirname(os.path.abspath(__file__))
LOCK = os.path.join(HOME, "envlock.lock")
UNSET = os.path.join(HOME, "unset.json")

BUG = 70
NO_COMMAND = 127


def main(argv: List[str]) -> int:
    """Return the exit code; does not return when a command takes over."""
    sys.path[:] = [folder for folder in sys.path if folder != HOME] + [HOME]
    extra = of_the_base(os.environ)
    for name in extra:
        del os.environ[name]
    if any(
        name.startswith("PYTHON") for name in extra
    ):  # this interpreter has obeyed it: start again
        os.execv(sys.executable, [sys.executable, "-B", os.path.abspath(__file__), *argv])
    if argv[:1] in (["--facts"], ["--deep"]):
        return facts(deep=argv[0] == "--deep")
    if argv[:1] == ["--files"]:
        return files(int(argv[1]))
    if argv[:1] == ["envlock"]:  # it looks for itself, and says more
        from envlock.fleet.command import main as command

        return command(argv[1:])
    code = verify()
    if code or not argv:
        return code
    return become(argv)


def of_the_base(environ: Mapping[str, str]) -> List[str]:
    """Return the variables that only the base has set.

    A value that is not the base's own was given on purpose: it stays, and is judged.
    """
    from envlock.runtime import strict_json  # `json` costs 8 ms

    try:
        with open(UNSET, "rb") as stream:
            unset = strict_json.parse(stream.read())
    except FileNotFoundError:
        return []
    return [name for name, value in unset.items() if environ.get(name) == value]


def machine() -> Host:
    """Return this machine as the command will see it: started with the variables that are left."""
    from envlock.runtime.host import Host

    return Host(started_with=dict(os.environ))


def verify() -> int:
    """Return 0 when this is the locked environment, else the exit code that says why not."""
    from envlock.runtime.assertion import ENFORCING, mode_of_process, say
    from envlock.runtime.errors import EnvlockError
    from envlock.runtime.image import in_one_line, verify_image
    from envlock.runtime.lockfile import read_file

    try:
        mode = mode_of_process()
        if mode == "off":
            say("warning: ENVLOCK_MODE=off, the environment is not verified")
            return 0
        lock = read_file(os.environ.get("ENVLOCK_LOCK") or LOCK)
        report = verify_image(
            lock, os.environ.get("ENVLOCK_POLICY") or None, deep=mode == "deep", host=machine()
        )
        if report.match:
            return 0
        if mode in ENFORCING:
            say("refusing to start: " + in_one_line(report))
            return report.exit_code
        say("warning: ENVLOCK_MODE=warn, so this does not stop the program: " + in_one_line(report))
    except EnvlockError as error:
        say(
            "refusing to start: "
            + error.message
            + (" ({})".format(error.hint) if error.hint else "")
        )
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


def facts(deep: bool) -> int:
    """Print what the collectors find, and what they could not; and what is wrong with files, where that is asked."""
    import json

    from envlock.runtime.lockfile import read_file
    from envlock.runtime.verify import found_here

    found = found_here(read_file(LOCK) if os.path.isfile(LOCK) else {}, machine())
    answer = [found.facts, found.unavailable]  # type: List[object]
    if deep:
        from envlock.runtime.files.deep import verify_files

        answer.append([finding.to_json() for finding in verify_files(read_file(LOCK))])
    json.dump(answer, sys.stdout)
    return 0


def files(epoch: int) -> int:
    """Print every path of the image that a build has written, known by its time: mode, owner, size and SHA-256."""
    import json

    device = os.lstat("/").st_dev
    found = {}
    for folder, folders, names in os.walk("/"):
        names += [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = [
            name for name in folders if os.lstat(os.path.join(folder, name)).st_dev == device
        ]
        for path in [folder] + [os.path.join(folder, name) for name in names]:
            status = os.lstat(path)
            if status.st_mtime_ns == epoch * 10**9 and status.st_dev == device:
                found[path] = [
                    status.st_mode,
                    status.st_uid,
                    status.st_gid,
                    content(path, status.st_mode),
                ]
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
