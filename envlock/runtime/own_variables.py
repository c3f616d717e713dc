"""Variables that envlock itself has set, which must not count as differences.

`envlock run` and `activate()` set variables that are unset in the lockfile and that its environment
still needs: the thread counts as numbers, and the recipe of an old TensorFlow. The names of these
variables are in ENVLOCK_ADDED, which child processes inherit. The facts are those of the
environment *without* the additions, so that capture and verify give the same result inside and
outside.
"""

from __future__ import annotations

from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Mapping, Optional

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
