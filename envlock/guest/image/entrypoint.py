"""Refuse to start in an environment other than the locked one: `entrypoint.py [CMD ARGS...]`

Verifies against /opt/envlock/envlock.lock (or $ENVLOCK_LOCK), then becomes the command. As the first
process of a container it does so in a child: it passes signals on, waits for orphans, and ends as the
command does. If the environment is not the locked one, it prints one line to stderr and exits with a code from the
README's table. `ENVLOCK_MODE=deep` also hashes every installed file, `ENVLOCK_MODE=warn` starts the
command anyway, `ENVLOCK_MODE=off` does not verify. The command `envlock verify [--deep]` prints the
whole report.

`entrypoint.py --facts` prints the facts as JSON instead, `--deep` the facts and the problems of
installed files, `--loaded` the problems of what `import tensorflow` loads, `--held` the lockfile with
the base's own files, `--files EPOCH` every file with that time.

Runs inside the image, on Python 3.8 or newer; standard library only. The runtime half is imported in
the functions that use it: it is found only when `main` has set the path.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Mapping, Optional

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
    if argv[:1] in (["--facts"], ["--deep"], ["--loaded"], ["--held"], ["--files"]):
        # The start of a container asks none of these.
        import importlib

        from envlock.runtime import image_questions

        return image_questions.print_answer(argv, LOCK, importlib.import_module)
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
    import signal

    # Python ignores these two, and what is ignored stays so: `yes | head` would never end.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write("envlock: cannot run `{}`: {}\n".format(argv[0], error.strerror))
        return NO_COMMAND


def split_process() -> Optional[int]:
    """Return None in a child process, which goes on; in this one, return the child's exit code.

    For the first process of a container the kernel has no default action on any signal, so a program
    without a handler would survive `docker stop` until it is killed; and it inherits each process
    that loses its parent. So this process is the first one, and the program is like any other.
    """
    import signal

    # A process gets these for what it does itself.
    own = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP}
    waited = signal.valid_signals() - own - {signal.SIGKILL, signal.SIGSTOP, signal.SIGABRT}
    # Before the child exists: none is lost between the two.
    signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    child = os.fork()
    if child == 0:
        take_terminal()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, waited)
        return None
    while True:
        number = signal.sigwait(waited)
        if number == signal.SIGCHLD:
            code = reap_processes(child)
            if code is not None:
                return code
        elif number not in (signal.SIGTTIN, signal.SIGTTOU):
            try:
                os.kill(child, number)
            except ProcessLookupError:
                pass


def take_terminal() -> None:
    """Make this process the one that Ctrl-C in the terminal goes to, if there is a terminal."""
    try:
        os.setpgid(0, 0)
        # SIGTTOU, which this would give, is blocked.
        os.tcsetpgrp(0, os.getpgrp())
    except OSError:
        pass


def reap_processes(child: int) -> Optional[int]:
    """Wait for every process that has ended; return the child's exit code, as shells have it, or
    None if it still runs.
    """
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == child:
            code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


if __name__ == "__main__":
    ended = split_process() if os.getpid() == 1 else None
    sys.exit(main(sys.argv[1:]) if ended is None else ended)
