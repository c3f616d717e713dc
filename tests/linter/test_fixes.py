"""What a finding tells to do is done, and the finding is gone."""

from __future__ import annotations

import pytest

from envlock.linter.files import parse
from envlock.linter.linter import Settings, check

HEAD = "import random\nimport numpy as np\nimport tensorflow as tf\nimport gymnasium as gym\n"
ON = "tf.config.experimental.enable_op_determinism()\n"
SEED = "tf.keras.utils.set_random_seed(7)\n"
MODEL = "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
FILES = "import glob\nfiles = {}\nnp.save('x', np.stack([np.load(file) for file in files]))\n"
WORDS = "words = {}\nnp.save('x', {{word: at for at, word in enumerate(words)}})\n"
POOL = "from multiprocessing import Pool\nwith Pool(2) as pool:\n    np.save('x', list(pool.{}(np.load, ['a', 'b'])))\n"
MAP = "ds = tf.data.Dataset.range(9).map(lambda x: tf.random.uniform([]){})\n"
ADD = "@tf.function\ndef f(x, y, z):\n    return {}\n"
LOOP = "y = tf.map_fn(lambda x: x + tf.random.normal([]), [1.0]{})\n"
XLA = "@tf.function{}\ndef f(x):\n    return x + tf.random.normal([3])\n"
DONE = {
    "ENV108": (f"{SEED}{MODEL}model.fit(1, 2)\n", f"{SEED}{ON}{MODEL}model.fit(1, 2)\n"),
    "ENV201": (f"tf.random.set_seed(7)\n{MODEL}", f"{SEED}{MODEL}"),
    "ENV202": (f"{ON}{MODEL}model.fit(1, 2)\n", f"{ON}{SEED}{MODEL}model.fit(1, 2)\n"),
    "ENV203": ("ds = tf.data.Dataset.range(9).shuffle(9)\n", "ds = tf.data.Dataset.range(9).shuffle(9, seed=7)\n"),
    "ENV204": ("x = tf.random.normal([])\n", f"{SEED}x = tf.random.normal([])\n"),
    "ENV205": ("x = np.random.rand()\n", "np.random.seed(7)\nx = np.random.rand()\n"),
    "ENV205 own": ("x = np.random.default_rng()\n", "x = np.random.default_rng(7)\n"),
    "ENV206": ("x = random.random()\n", "random.seed(7)\nx = random.random()\n"),
    "ENV206 own": ("x = random.Random()\n", "x = random.Random(7)\n"),
    "ENV207": ("import time\nrandom.seed(time.time())\n", "random.seed(7)\n"),
    "ENV208": (
        "g = tf.random.Generator.from_non_deterministic_state()\n",
        "g = tf.random.Generator.from_seed(7)\n",
    ),
    "ENV209": ("env = gym.make('A')\nenv.reset()\n", "env = gym.make('A')\nenv.reset(seed=7)\n"),
    "ENV301": (SEED + MAP.format(", num_parallel_calls=2"), SEED + MAP.format("")),
    "ENV302": (
        "ds = tf.data.Dataset.range(9).map(abs, num_parallel_calls=2, deterministic=False)\n",
        "ds = tf.data.Dataset.range(9).map(abs, num_parallel_calls=2, deterministic=True)\n",
    ),
    "ENV303": (FILES.format("glob.glob('*')"), FILES.format("sorted(glob.glob('*'))")),
    "ENV304": (WORDS.format("set(text.split())"), WORDS.format("dict.fromkeys(text.split())")),
    "ENV305": ("x = hash('a') % 9\n", "import zlib\nx = zlib.crc32(b'a') % 9\n"),
    "ENV306": (f"{SEED}{ON}{MODEL}model.fit(data, workers=4)\n", f"{SEED}{ON}{MODEL}model.fit(data, workers=1)\n"),
    "ENV307": (POOL.format("imap_unordered"), POOL.format("imap")),
    "ENV402": (ADD.format("tf.add_n([x, y, z])"), ADD.format("x + y + z")),
    "ENV403": (SEED + LOOP.format(""), SEED + LOOP.format(", parallel_iterations=1")),
    "ENV404": (SEED + XLA.format("(jit_compile=True)"), SEED + XLA.format("")),
}  # fmt: skip


@pytest.mark.parametrize("name", DONE)
def test_a_fix_that_is_obeyed_cures(name: str) -> None:
    rule = name.partition(" ")[0]
    before, after = (
        {finding.rule for finding in check([parse("x.py", HEAD + code)], Settings("2.21.0"))} for code in DONE[name]
    )
    assert rule in before
    assert after == set()
