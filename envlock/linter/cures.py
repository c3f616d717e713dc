"""Remedies that name functions which a TensorFlow version has."""

from __future__ import annotations

from envlock.data.specifiers import matches_version

SEED_ALL = "tf.keras.utils.set_random_seed(seed)"
SEED_GRAPH = "tf.random.set_seed(seed)"
OLDER = {
    "<2.0": "tf.set_random_seed(seed)",
    ">=2.0,<2.7": SEED_GRAPH,
}
"""What seeds TensorFlow before 2.7, which `set_random_seed` of Keras came with."""
PLAIN = "numpy.random.seed(seed) and random.seed(seed)"


def fit_version(fix: str, tensorflow: str) -> str:
    """Return a remedy with the functions that the version has.

    Sources: https://github.com/tensorflow/tensorflow/releases/tag/v2.7.0, and
    https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/random/set_random_seed
    """
    for versions, call in OLDER.items():
        if not matches_version([versions], tensorflow):
            continue
        # Python and NumPy have functions of their own, which are named beside it.
        for own in ("np.random.seed(seed)", "random.seed(seed)"):
            fix = fix.replace(f"{own}, or {SEED_ALL}, at", f"{own} at")
        fix = fix.replace(f"{SEED_ALL}, or {SEED_GRAPH}, at", f"{call} at")
        fix = fix.replace(SEED_ALL, f"{call}, {PLAIN}")
        return fix.replace(SEED_GRAPH, call)
    return fix
