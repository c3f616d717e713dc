"""Variables that envlock itself has set, so that nobody takes them for a difference.

`envlock run` and `activate()` set what the lock has unset and its environment still needs: the
thread counts by number, and the recipe of an old TensorFlow. What they add is named in
ENVLOCK_ADDED, which child processes inherit. The facts are those of the environment *without* the
additions; so capture and verify say the same inside as outside.
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
"""Variable -> the fact of `cpu` that says how many threads an environment had in effect."""

settled: Dict[str, Optional[str]] = {}
"""What `activate()` has set in this process before TensorFlow was imported: TensorFlow has read
this."""


def get_additions(environ: Mapping[str, str]) -> Dict[str, str]:
    """Return the variables that envlock has added and nobody has changed since."""
    additions = {}
    for entry in environ.get(ADDED, "").split():
        name, sign, value = entry.partition("=")
        if sign and environ.get(name) == value and _is_ours(name, value):
            additions[name] = value
    return additions


def get_own_recipe(environ: Mapping[str, str]) -> Dict[str, str]:
    """Return what envlock has added that makes other kernels compute: neither threads nor hash seed.

    The lockfile has these unset, so a verdict that does not compare them says so.
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
    """Return what ENVLOCK_ADDED says of some additions."""
    return " ".join([f"{name}={value}" for name, value in sorted(additions.items())])


def _is_ours(name: str, value: str) -> bool:
    """Return whether envlock adds this value; any other was put into ENVLOCK_ADDED by somebody else."""
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
