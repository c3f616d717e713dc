"""What a finding tells to do is done, and the finding is gone."""

from __future__ import annotations

import pytest

from envlock.data.lint_tables import load_lint_rules
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
ABOVE = "#above\n"
"""What follows stands in a file without HEAD: it comes before the imports, or in the place of them."""
OS = "import os\n"
SET = f"{ABOVE}{OS}os.environ['{{}}'] = {{}}\n"
TIMES = "import os\n" + FILES
READER = "ds = tf.data.experimental.{}('a', 4{})\n"
ROWS = "import sqlite3\nnp.save('x', sqlite3.connect('a').execute('select a from b{}').fetchall())\n"
THREADS = (
    "import threading\nfound = []\ndef work(n):\n    {}\n"
    "for i in range(4):\n    threading.Thread(target=work, args=(i,)).start()\n"
)
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
    "ENV002": ("x = 1  # envlock: ignore[ENV203]\n", "x = 1\n"),
    "ENV003": ("x = 1  # envlock: ignore[ENV203] sorted\n", "x = 1\n"),
    "ENV101": (f"{ON.replace('()', '')}", ON),
    "ENV102": ("tf.random.set_seed = 7\n", "tf.random.set_seed(7)\n"),
    "ENV103": (f"{OS}os.environ['TF_ENABLE_ONEDNN_OPTS'] = '0'\n", f"{ABOVE}{OS}os.environ['TF_ENABLE_ONEDNN_OPTS'] = '0'\n"),
    "ENV103 start": (f"{OS}os.environ['LD_PRELOAD'] = 'a.so'\n", ""),
    "ENV104": (f"{ABOVE}{OS}os.environ['PYTHONHASHSEED'] = '0'\n", ""),
    "ENV105": (SET.format("TF_DETERMINISTIC_OPS", "'yes'"), SET.format("TF_DETERMINISTIC_OPS", "'1'")),
    "ENV105 text": (SET.format("TF_DETERMINISTIC_OPS", 1), SET.format("TF_DETERMINISTIC_OPS", "'1'")),
    "ENV106": (SET.format("TF_USE_CUDNN_AUTOTUNE", "'0'"), SET.format("TF_CUDNN_USE_AUTOTUNE", "'0'")),
    "ENV107": ("import tfdeterminism\ntfdeterminism.patch()\n", ON),
    "ENV107 alone": (f"{ABOVE}{OS}os.environ['TF_CUDNN_DETERMINISTIC'] = '1'\n", ON),
    "ENV109": ("x = tf.placeholder(tf.float32)\n", f"{ABOVE}import tensorflow.compat.v1 as tf\nx = tf.placeholder(tf.float32)\n"),
    "ENV110": (
        f"{OS}import horovod.tensorflow as hvd\nos.environ['HOROVOD_FUSION_THRESHOLD'] = '64'\n",
        f"{OS}import horovod.tensorflow as hvd\nos.environ['HOROVOD_FUSION_THRESHOLD'] = '0'\n",
    ),
    "ENV111": ("x = tf.keras.layers.experimental.preprocessing.RandomFlip()\n", "x = tf.keras.layers.RandomFlip()\n"),
    "ENV111 weights": (f"{SEED}{MODEL}model.save_weights('a')\n", f"{SEED}{MODEL}model.save_weights('a.weights.h5')\n"),
    "ENV203 csv": (READER.format("make_csv_dataset", ""), READER.format("make_csv_dataset", ", shuffle_seed=7")),
    "ENV203 files": ("ds = tf.data.Dataset.list_files('*')\n", f"{SEED}ds = tf.data.Dataset.list_files('*')\n"),
    "ENV204 stateless": ("x = tf.random.normal([])\n", "x = tf.random.stateless_normal([], seed=(1, 2))\n"),
    "ENV206 system": ("np.save('x', random.SystemRandom().random())\n", "np.save('x', random.Random(7).random())\n"),
    "ENV208 global": (
        "g = tf.random.get_global_generator()\n",
        "tf.random.set_global_generator(tf.random.Generator.from_seed(7))\ng = tf.random.get_global_generator()\n",
    ),
    "ENV208 seed": (
        "x = tf.nn.fractional_max_pool(y, [1, 2, 2, 1])\n",
        "x = tf.nn.fractional_max_pool(y, [1, 2, 2, 1], seed=7)\n",
    ),
    "ENV209 space": (
        "env = gym.make('A')\nenv.reset(seed=7)\nnp.save('x', env.action_space.sample())\n",
        "env = gym.make('A')\nenv.reset(seed=7)\nenv.action_space.seed(7)\nnp.save('x', env.action_space.sample())\n",
    ),
    "ENV210": ("np.save('x', np.empty(3))\n", "np.save('x', np.zeros(3))\n"),
    "ENV210 filled": ("x = np.empty(3)\nnp.save('x', x)\n", "x = np.empty(3)\nx[:] = 7\nnp.save('x', x)\n"),
    "ENV301 stateless": (
        SEED + MAP.format(", num_parallel_calls=2"),
        "ds = tf.data.Dataset.range(9).map(lambda x: tf.random.stateless_uniform([], (1, x)), num_parallel_calls=2)\n",
    ),
    "ENV303 time": (TIMES.format("sorted(glob.glob('*'), key=os.path.getmtime)"), FILES.format("sorted(glob.glob('*'))")),
    "ENV304 sorted": (WORDS.format("set(text.split())"), WORDS.format("sorted(set(text.split()))")),
    "ENV305 id": ("np.save('x', sorted(things, key=id))\n", "np.save('x', sorted(things, key=str))\n"),
    "ENV307 sorted": (POOL.format("imap_unordered"), POOL.replace("list(", "sorted(").format("imap_unordered")),
    "ENV307 threads": (
        THREADS.format("found.append(n)") + "np.save('x', found)\n",
        THREADS.format("found.append((n, n))") + "found.sort()\nnp.save('x', found)\n",
    ),
    "ENV307 training": (
        SEED + ON + MODEL + THREADS.format("model.train_on_batch(n, n)"),
        SEED + ON + MODEL + "for i in range(4):\n    model.train_on_batch(i, i)\n",
    ),
    "ENV308": (ROWS.format(""), ROWS.format(" order by id")),
    "ENV401": (
        "x = tf.Variable([0.0])\nx.scatter_add(tf.IndexedSlices([0.1, 0.2], [0, 0]))\n",
        f"{ON}x = tf.Variable([0.0])\nx.scatter_add(tf.IndexedSlices([0.1, 0.2], [0, 0]))\n",
    ),
    "ENV402 reduce": (
        ADD.format("tf.add_n([x, y, z])"),
        "import functools\n" + ADD.format("functools.reduce(tf.add, [x, y, z])"),
    ),
    "ENV403 vectorized": (SEED + LOOP.format(""), SEED + LOOP.replace("tf.map_fn", "tf.vectorized_map").format("")),
    "ENV404 stateless": (
        SEED + XLA.format("(jit_compile=True)"),
        XLA.replace("tf.random.normal([3])", "tf.random.stateless_normal([3], (1, 2))").format("(jit_compile=True)"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DONE)
def test_a_fix_that_is_obeyed_cures(name: str) -> None:
    rule = name.partition(" ")[0]
    before, after = map(find_rules, DONE[name])
    assert rule in before
    assert after == set()


def find_rules(code: str) -> set[str]:
    """Return the rules that find something in code below HEAD."""
    text = code.removeprefix(ABOVE) if code.startswith(ABOVE) else HEAD + code
    return {finding.rule for finding in check([parse("x.py", text)], Settings("2.21.0"))}


def test_the_fix_of_every_rule_is_obeyed_here() -> None:
    """ENV001 asks for another file."""
    obeyed = {name.partition(" ")[0] for name in DONE}
    assert sorted(set(load_lint_rules()) - obeyed) == ["ENV001"]
