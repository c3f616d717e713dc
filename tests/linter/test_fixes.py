"""What a finding tells to do is done, and the finding is gone: the examples of lint.toml, and other ways."""

from __future__ import annotations

import pytest

from envlock.data.lint_tables import LintRule, load_lint_rules
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
ABOVE = "#above\n"
"""What follows stands in a file without HEAD: it comes before the imports, or in the place of them."""
OS = "import os\n"
SET = f"{ABOVE}{OS}os.environ['{{}}'] = {{}}\n"
TIMES = "import os\n" + FILES
READER = "ds = tf.data.experimental.{}('a', 4{})\n"
THREADS = (
    "import threading\nfound = []\ndef work(n):\n    {}\n"
    "for i in range(4):\n    threading.Thread(target=work, args=(i,)).start()\n"
)
DONE = {
    "ENV205 own": ("x = np.random.default_rng()\n", "x = np.random.default_rng(7)\n"),
    "ENV206 own": ("x = random.Random()\n", "x = random.Random(7)\n"),
    "ENV103 start": (f"{OS}os.environ['LD_PRELOAD'] = 'a.so'\n", ""),
    "ENV107 alone": (f"{ABOVE}{OS}os.environ['TF_CUDNN_DETERMINISTIC'] = '1'\n", ON),
    "ENV109 weights": (f"{SEED}{MODEL}model.save_weights('a')\n", f"{SEED}{MODEL}model.save_weights('a.weights.h5')\n"),
    "ENV109 workers": (f"{SEED}{ON}{MODEL}model.fit(x, workers=1)\n", f"{SEED}{ON}{MODEL}model.fit(x)\n"),
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
    "ENV301 stateless": (
        SEED + MAP.format(", num_parallel_calls=2"),
        "ds = tf.data.Dataset.range(9).map(lambda x: tf.random.stateless_uniform([], (1, x)), num_parallel_calls=2)\n",
    ),
    "ENV303 time": (TIMES.format("sorted(glob.glob('*'), key=os.path.getmtime)"), FILES.format("sorted(glob.glob('*'))")),
    "ENV304 sorted": (WORDS.format("set(text.split())"), WORDS.format("sorted(set(text.split()))")),
    "ENV305 id": ("np.save('x', sorted(things, key=id))\n", "np.save('x', sorted(things, key=str))\n"),
    "ENV307 sorted": (POOL.format("imap_unordered"), POOL.replace("list(", "sorted(").format("imap_unordered")),
    "ENV307 training": (
        SEED + ON + MODEL + THREADS.format("model.train_on_batch(n, n)"),
        SEED + ON + MODEL + "for i in range(4):\n    model.train_on_batch(i, i)\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DONE)
def test_another_fix_that_is_obeyed_cures(name: str) -> None:
    rule = name.partition(" ")[0]
    before, after = (find_rules(_complete(code)) for code in DONE[name])
    assert rule in before
    assert after == set()


@pytest.mark.parametrize("rule", load_lint_rules().values(), ids=lambda rule: rule.id)
def test_the_example_of_a_rule_is_found_and_its_cure_is_not(rule: LintRule) -> None:
    assert bool(rule.before) == (rule.id != "ENV001")  # which asks for another file
    if rule.before:
        assert rule.id in find_rules(rule.before)
        assert find_rules(rule.after) == set()


def find_rules(text: str) -> set[str]:
    """Return the rules that find something in a file."""
    return {finding.rule for finding in check([parse("x.py", text)], Settings("2.21.0"))}


def _complete(code: str) -> str:
    """Return code below HEAD, unless it says that it comes before the imports."""
    return code.removeprefix(ABOVE) if code.startswith(ABOVE) else HEAD + code


@pytest.mark.parametrize(
    ("version", "call"), [("1.15.5", "tf.set_random_seed(seed)"), ("2.3.0", "tf.random.set_seed(seed)")]
)
def test_a_fix_names_functions_that_the_version_has(version: str, call: str) -> None:
    text = (
        f"{HEAD}x = [random.random(), np.random.rand()]\ny = tf.random.normal([3])\n{MODEL}model.fit(x, y, epochs=2)\n"
    )
    fixes = {each.fix for each in check([parse("x.py", text)], Settings(version))}
    assert any(call in fix for fix in fixes)
    assert not any("tf.keras.utils.set_random_seed" in fix for fix in fixes)
    assert "Call random.seed(seed) at the start." in fixes
    assert f"Call {call} at the start." in fixes
    now = {each.fix for each in check([parse("x.py", text)], Settings("2.21.0"))}
    assert any("tf.keras.utils.set_random_seed" in fix for fix in now)
