"""What `envlock diverge` advises, obeyed: the program differs, its line says what to do, and the cured one does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import activate
from tests.exhaustive import exhaustive, first

HEAD = "import json, os, random, threading, time, uuid\nimport numpy as np\nimport tensorflow as tf\nimport keras\n\n\n"


class Case(NamedTuple):
    """A program.

    Attributes:
        body: its lines.
        says: what the printed advice has.
        wrong, right: the text that is replaced, and what the advice makes of it.
    """

    body: str
    says: str
    wrong: str
    right: str


CASES = {
    "a counter in a file": Case(
        "def step():\n    n = 0\n    if os.path.exists('n.json'):\n        with open('n.json') as file:\n"
        "            n = json.load(file)\n    with open('n.json', 'w') as file:\n        json.dump(n + 1, file)\n"
        "    return {'loss': tf.constant(float(n)) * 2.0}\n",
        "remove what the last one left before it starts",
        "    n = 0\n",
        "    n = 0\n    if os.path.exists('n.json'):\n        os.remove('n.json')\n",
    ),
    "data shuffled in place": Case(
        "if not os.path.exists('d.npy'):\n    np.save('d.npy', np.arange(8.0))\n\n\ndef step():\n    d = np.load('d.npy')\n"
        "    np.random.seed(3)\n    np.random.shuffle(d)\n    np.save('d.npy', d)\n"
        "    return {'loss': tf.constant(d) * tf.range(8.0, dtype=tf.float64)}\n",
        "remove what the last one left before it starts",
        "    d = np.load('d.npy')\n",
        "    np.save('d.npy', np.arange(8.0))\n    d = np.load('d.npy')\n",
    ),
    "a checkpoint that goes on": Case(
        "def step():\n    w = tf.Variable(tf.ones(3))\n    saved = tf.train.Checkpoint(w=w)\n"
        "    manager = tf.train.CheckpointManager(saved, 'ck', max_to_keep=1)\n    saved.restore(manager.latest_checkpoint)\n"
        "    w.assign(w * 0.5)\n    manager.save()\n    return {'w': w}\n",
        "Give each run an empty folder",
        "'ck'",
        "f'ck-{uuid.uuid4()}'",
    ),
    "several workers of a Keras data set": Case(
        "class Batches(keras.utils.PyDataset):\n    def __init__(self):\n        super().__init__(workers=4)\n\n"
        "    def __len__(self):\n        return 16\n\n    def __getitem__(self, i):\n"
        "        time.sleep(0.001 * np.random.rand())\n        x = np.random.rand(4, 3).astype('float32')\n"
        "        return x, x.sum(1, keepdims=True)\n\n\ndef step():\n    keras.utils.set_random_seed(1)\n"
        "    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])\n"
        "    model.compile('sgd', 'mse')\n    return {'loss': model.fit(Batches(), verbose=0).history['loss']}\n",
        "`workers=1` of a Keras dataset",
        "workers=4",
        "workers=1",
    ),
    "numbers that nothing seeds": Case(
        "def step():\n    return {'x': tf.constant(np.random.rand(3)) * 2.0}\n",
        "set_random_seed(SEED) at the start",
        "def step():\n",
        "def step():\n    tf.keras.utils.set_random_seed(7)\n",
    ),
    "a seed from the clock": Case(
        "def step():\n    random.seed(time.time())\n    return {'x': tf.constant(random.random()) * 2.0}\n",
        "Do not let the time decide",
        "time.time()",
        "7",
    ),
    "a generator without a seed": Case(
        "def step():\n    return {'x': tf.constant(np.random.default_rng().random(3)) * 2.0}\n",
        "Pass a seed to the generator that is made here",
        "default_rng()",
        "default_rng(7)",
    ),
    "a name that is drawn": Case(
        "def step():\n    return {'x': tf.constant(float(uuid.uuid4().int % 1000)) * 2.0}\n",
        "do not compute from a name that is drawn",
        "uuid.uuid4().int % 1000",
        "7",
    ),
}


def ask(body: str, folder: Path, python: Path) -> dict[str, Any]:
    """Return the report on a program in an empty folder."""
    folder.mkdir()
    (folder / "program.py").write_text(HEAD + body, encoding="utf-8")
    done = activate(python, folder)("diverge", "program.py:step", "--format", "json", timeout=400)
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@exhaustive
@pytest.mark.tensorflow
@pytest.mark.parametrize("name", first(1, CASES))
def test_the_advice_is_obeyed(name: str, tensorflow_python: Path, tmp_path: Path) -> None:
    case = CASES[name]
    told = ask(case.body, tmp_path / "wrong", tensorflow_python)
    assert not told["match"]
    assert case.says in told["findings"][0]["fix"], told["findings"][0]
    assert case.body.count(case.wrong) == 1
    after = ask(case.body.replace(case.wrong, case.right), tmp_path / "right", tensorflow_python)
    assert after["match"], after["findings"]
