"""Refuse to start in an environment other than the locked one: `entrypoint.py [CMD ARGS...]`

Verifies against /opt/envlock/envlock.lock (or $ENVLOCK_LOCK), then becomes the command. If the
environment is not the locked one, it prints one line to stderr and exits with a code from the
README's table. `ENVLOCK_MODE=deep` also hashes every installed file, `ENVLOCK_MODE=warn` starts the
command anyway, `ENVLOCK_MODE=off` does not verify. The command `envlock verify [--deep]` prints the
whole report.

`entrypoint.py --facts` prints the facts as JSON instead, `--deep` the facts and the problems of
installed files, `--files EPOCH` every file with that time.

Runs inside the image, on Python 3.8 or newer; standard library only. The runtime half is imported in
the functions that use it: it is found only when `main` has set the path.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Mapping

HOME = os.path.dirname(os.path.abspath(__file__))
LOCK = os.path.join(HOME, "envlock.lock")
UNSET = os.path.join(HOME, "unset.json")

BUG = 70  # EX_SOFTWARE of sysexits.h
NO_COMMAND = 127  # as shells: https://pubs.opengroup.org/onlinepubs/9699919799/utilities/V3_chap02.html#tag_18_08_02


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
    if argv[:1] in (["--facts"], ["--deep"], ["--files"]):
        # The start of a container asks none of these.
        from envlock.runtime import image_questions

        return image_questions.print_answer(argv, LOCK)
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
    # Not at the top: it is found only on the path that `main` has set. `json` would cost 8 ms.
    from envlock.runtime import strict_json

    try:
        with open(UNSET, "rb") as stream:
            unset = strict_json.parse(stream.read())
    except FileNotFoundError:
        return []
    return [name for name, value in unset.items() if environ.get(name) == value]


def verify_environment() -> int:
    """Return 0 if this is the locked environment, else the exit code for the reason."""
    # Not at the top: they are found only on the path that `main` has set.
    from envlock.runtime import assertion, errors, host, image, lockfile

    try:
        mode = assertion.mode_of_process()
        if mode == "off":
            assertion.say("warning: ENVLOCK_MODE=off, the environment is not verified")
            return 0
        lock = lockfile.read_file(os.environ.get("ENVLOCK_LOCK") or LOCK)
        report = image.verify_image(
            lock,
            os.environ.get("ENVLOCK_POLICY") or None,
            deep=mode == "deep",
            # As the command will see it: started with the variables that are left.
            host=host.Host(started_with=dict(os.environ)),
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
        assertion.say("refusing to start: " + image.explain(error))
        return error.exit_code
    except Exception as error:
        # As `traceback.print_exc` does, whose module takes 10 ms to load.
        sys.__excepthook__(type(error), error, error.__traceback__)
        sys.stderr.write("envlock: this is a bug in envlock: {}\n".format(error))
        return BUG
    return 0


def run_command(argv: List[str]) -> int:
    """Become the command in this process; return the exit code if that fails."""
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write("envlock: cannot run `{}`: {}\n".format(argv[0], error.strerror))
        return NO_COMMAND


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
