"""Variables that envlock itself, or the pool of a worker, has set, which must not count as differences.

`envlock run` and `activate()` set variables that are unset in the lockfile and that its environment
still needs: the thread counts as numbers, and the recipe of an old TensorFlow. The names of these
variables are in ENVLOCK_ADDED, which child processes inherit. The facts are those of the
environment *without* the additions, so that capture and verify give the same result inside and
outside. A pool sets its variables in each of its workers alike.
"""

from __future__ import annotations

from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional

ADDED = "ENVLOCK_ADDED"
THREADS = {
    "TF_NUM_INTRAOP_THREADS": "intra_op_threads",
    "TF_NUM_INTEROP_THREADS": "inter_op_threads",
}
"""Variable -> the fact of `cpu` with the number of threads that an environment used."""

settled: Dict[str, Optional[str]] = {}
"""The variables that `activate()` has set in this process before TensorFlow was imported, so that
TensorFlow has read them.
"""


def get_additions(environ: Mapping[str, str]) -> Dict[str, str]:
    """Return the variables that envlock has added and that have not been changed since."""
    additions = {}
    for entry in environ.get(ADDED, "").split():
        name, sign, value = entry.partition("=")
        if sign and environ.get(name) == value and _is_ours(name, value):
            additions[name] = value
    return additions


def get_own_recipe(environ: Mapping[str, str]) -> Dict[str, str]:
    """Return the additions of envlock that make other kernels compute: neither threads nor hash
    seed.

    They are unset in the lockfile, so a verdict that ignores them says so.
    """
    # Most processes have no additions, and read no table.
    if ADDED not in environ:
        return {}
    always = table("determinism_recipes")["always"]
    recipe = get_additions(environ)
    for name in (*THREADS, *always):
        recipe.pop(name, None)
    return recipe


def format_additions(additions: Mapping[str, str]) -> str:
    """Return the value of ENVLOCK_ADDED for some additions."""
    return " ".join([f"{name}={value}" for name, value in sorted(additions.items())])


def find_set_by_pool(environ: Mapping[str, str], parent: Mapping[str, str]) -> List[str]:
    """Return the variables that a pool has set in this worker: those with the value that it sets, which the process
    that started this one was not started with.

    They follow from the program and from the number of processors, which are held, on every machine alike.

    Args:
        environ: the variables of this process.
        parent: those that its parent process was started with.
    """
    found = []
    for row in table("launchers"):
        if row["kind"] != "pool" or not has_started(row, environ):
            continue
        for path in row["facts"]:
            name = path.partition(".")[2]
            if name in environ and name not in parent and is_its_doing(row, path, environ):
                found.append(name)
    return found


def has_started(row: Dict[str, Any], environ: Mapping[str, str]) -> bool:
    """Return whether a launcher, pool or limit has set its variables in this process."""
    return any(map(environ.get, row["any"])) and all(map(environ.get, row["all"]))


def is_its_doing(row: Dict[str, Any], path: str, environ: Mapping[str, str]) -> bool:
    """Return whether a fact has the value that this row sets; a variable with another value comes
    from the user.
    """
    section, _, name = path.partition(".")
    if section != "environ":
        return True
    wanted = environ.get(row["value_of"]) if row["value_of"] is not None else row["value"]
    return wanted is None or environ.get(name) == wanted


def _is_ours(name: str, value: str) -> bool:
    """Return whether envlock adds this value; any other was put into ENVLOCK_ADDED by someone else."""
    if name in THREADS:
        return value.isascii() and value.isdigit()
    recipes = table("determinism_recipes")
    if recipes["always"].get(name) == value:
        return True
    for row in recipes["recipes"] + recipes["nvidia"]:
        for key in ("set", "by_variable"):
            if row.get(key, {}).get(name) == value:
                return True
    return False
