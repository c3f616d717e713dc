"""The remedy of each rule is obeyed: before it two runs differ or a word has no effect, after it they are alike."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from envlock.data.lint_tables import load_lint_rules
from envlock.linter.files import parse
from envlock.linter.lint import lint
from envlock.linter.linter import Settings, check

PROGRAM = Path(__file__).with_name("obeyed_program.py")
ELSEWHERE = {
    "ENV001": "about a file, not a program",
    "ENV002": "about a comment",
    "ENV003": "about a comment",
    "ENV103": "read when Keras is imported",
    "ENV104": "read by the interpreter when it starts",
    "ENV106": "read when Keras is imported, under its right name",
    "ENV209": "needs Gymnasium, not TensorFlow",
}
"""Rules that a test of their own obeys, below, each with the reason."""
SWITCHES = ("ENV101", "ENV107")
MAP = """
import tensorflow as tf

data = tf.data.Dataset.range(40)
data = data.map(lambda x: tf.numpy_function(slow, [x], tf.int64), num_parallel_calls=4, deterministic={})
"""
CLOCK = "import time\n\nimport numpy as np\n\nnp.random.seed({})\nz = np.random.rand(3)\n"
DRAWN = """
import tensorflow as tf

tf.random.set_seed(7)


def late(x):
    return tf.reshape(tf.numpy_function(slow, [tf.ones([1], tf.int32)], tf.int32), [1])


data = tf.data.Dataset.range(40).map(lambda x: {}, num_parallel_calls=4)
"""
IMPORT = "import tensorflow as tf\n\n"
TRAIN = """
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit({}, verbose=0)
"""
LATE = """
import tensorflow as tf

tf.keras.utils.set_random_seed(7)
{}

def late(x):
    return tf.reshape(tf.numpy_function(slow, [tf.ones([1], tf.int32)], tf.int32), [1])


data = tf.data.Dataset.range(40).map(lambda x: tf.random.uniform(late(x)), num_parallel_calls=4)
data = data.map(lambda row: (tf.ensure_shape(row, [1]), tf.ensure_shape(row, [1]))).batch(1)
"""
"""A training that differs without the switch on a processor, too: which row gets which number, and each row is a step."""
WORKERS = """
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(7)


class Batches(tf.keras.utils.PyDataset):
    def __init__(self):
        super().__init__(workers={})

    def __len__(self):
        return 20

    def __getitem__(self, at):
        slow(at)
        return np.random.rand(4, 2), np.ones((4, 1))

"""
OWN = {
    "ENV102": (
        f"{IMPORT}tf.random.set_seed = 7\nz = tf.random.normal([3])\n",
        f"{IMPORT}tf.random.set_seed(7)\nz = tf.random.normal([3])\n",
    ),
    "ENV108": (
        LATE.format("") + TRAIN.format("data"),
        LATE.format("tf.config.experimental.enable_op_determinism()\n") + TRAIN.format("data"),
    ),
    "ENV202": (
        IMPORT + TRAIN.format("x, y"),
        f"{IMPORT}tf.keras.utils.set_random_seed(7)\n" + TRAIN.format("x, y"),
    ),
    "ENV207": (CLOCK.format("time.time_ns() % 2**32"), CLOCK.format("7")),
    "ENV301": (
        DRAWN.format("tf.random.uniform(late(x))"),
        DRAWN.format("tf.random.stateless_uniform(late(x), (7, x))"),
    ),
    "ENV302": (MAP.format(False), MAP.format(True)),
    "ENV306": (WORKERS.format(4) + TRAIN.format("Batches()"), WORKERS.format(1) + TRAIN.format("Batches()")),
    "ENV309": (
        "import time\n\nsteps, end = 0, time.time() + 0.02\nwhile time.time() < end:\n    steps += 1\n",
        "steps = 0\nfor _ in range(1000):\n    steps += 1\n",
    ),
}
"""Programs in the place of the examples, where these make nothing that a second run could show."""


def run(python: Path, folder: Path, order: str, programs: dict[str, str]) -> dict[str, str]:
    """Return a digest of what each program made, in a process of its own."""
    done = subprocess.run(
        [python, PROGRAM, folder, order], input=json.dumps(programs), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (answer,) = (line for line in done.stdout.splitlines() if line.startswith("answer "))
    found: dict[str, str] = json.loads(answer.removeprefix("answer "))
    return found


@pytest.mark.parametrize("rule", OWN)
def test_the_rule_finds_what_runs_here_and_not_the_cure(rule: str) -> None:
    before, after = ({found.rule for found in check([parse("x.py", code)], Settings("2.21.0"))} for code in OWN[rule])
    assert rule in before
    assert rule not in after


@pytest.mark.tensorflow
def test_a_remedy_that_is_obeyed_makes_two_runs_alike(tensorflow_python: Path, tmp_path: Path) -> None:
    rules = load_lint_rules()
    assert ELSEWHERE.keys() <= rules.keys()
    programs = {}
    for rule, row in rules.items():
        if rule not in ELSEWHERE:
            before, after = OWN.get(rule, (row.before, row.after))
            programs[f"{rule} before"], programs[f"{rule} after"] = before, after
    one = run(tensorflow_python, tmp_path / "one", "forwards", programs)
    other = run(tensorflow_python, tmp_path / "other", "backwards", programs)
    differs = {name: one[name] != other[name] for name in programs}
    assert one["ENV109 before"] == other["ENV109 before"] == "AttributeError"
    for rule in SWITCHES:
        assert one[f"{rule} before"].endswith("False"), rule
        assert one[f"{rule} after"].endswith("True"), rule
    raised = {name for name, made in one.items() if made.endswith("Error")}
    assert raised == {"ENV109 before"}
    alike = {name for name, is_other in differs.items() if name.endswith("before") and not is_other}
    assert alike == {f"{rule} before" for rule in (*SWITCHES, "ENV109")}
    assert not any(is_other for name, is_other in differs.items() if name.endswith("after"))


@pytest.mark.processes
def test_a_hash_seed_holds_only_where_the_interpreter_starts_with_it() -> None:
    row = load_lint_rules()["ENV104"]
    assert "PYTHONHASHSEED=0 python" in row.fix

    def hash_in(code: str, **more: str) -> str:
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
        code = code.replace("import numpy as np", "") + "\nprint(hash('word'))\n"
        return subprocess.check_output([sys.executable, "-c", code], env={**environ, **more}, text=True)

    assert hash_in(row.before) != hash_in(row.before)
    assert hash_in(row.after, PYTHONHASHSEED="0") == hash_in(row.after, PYTHONHASHSEED="0")


def find_rules(code: str) -> set[str]:
    """Return the rules that find something in a file."""
    return {found.rule for found in check([parse("x.py", code)], Settings("2.21.0"))}


def test_a_remedy_of_a_comment_is_taken_word_for_word() -> None:
    rules = load_lint_rules()
    bad, unused = rules["ENV002"], rules["ENV003"]
    comment = bad.fix.split("`")[1]
    assert "ENV002" in find_rules(bad.before)
    assert find_rules(re.sub("# envlock.*", comment, bad.before)) == set()
    assert (find_rules(unused.before), unused.fix) == ({"ENV003"}, "Remove it.")
    assert find_rules(re.sub(" *# envlock.*", "", unused.before)) == set()


@pytest.mark.processes
def test_a_file_that_no_python_reads_is_corrected_or_left_out(tmp_path: Path) -> None:
    code = {"bad.py": "def f(:\n    pass\n", "good.py": "x = 1\n"}
    for name, text in code.items():
        (tmp_path / name).write_text(text)
    run_it = [sys.executable, str(tmp_path / "bad.py")]
    assert subprocess.run(run_it, capture_output=True, check=False).returncode == 1
    assert [each.rule for each in lint([tmp_path]).findings] == ["ENV001"]
    assert lint([tmp_path], exclude=["bad.py"]).findings == []
    (tmp_path / "bad.py").write_text(code["bad.py"].replace("(:", "():"))
    assert subprocess.run(run_it, capture_output=True, check=False).returncode == 0
    assert lint([tmp_path]).findings == []


SET = 'os.environ["KERAS_MAX_EPOCHS"] = "1"\n'
IMPORTED = "import keras\n"


@pytest.mark.tensorflow
def test_a_variable_has_an_effect_under_its_name_and_before_the_import(tensorflow_python: Path) -> None:
    late, misspelt = f"import os\n{IMPORTED}{SET}", f"import os\n{SET.replace('KERAS_MAX', 'Keras-Max')}{IMPORTED}"
    (finding,) = check([parse("x.py", misspelt)], Settings("2.21.0"))
    assert finding.rule == "ENV106"
    meant = finding.fix.removeprefix("Write ").removesuffix(".")
    obeyed = misspelt.replace("Keras-Max_EPOCHS", meant)
    assert (find_rules(late), find_rules(obeyed)) == ({"ENV103"}, set())
    assert obeyed == f"import os\n{SET}{IMPORTED}"

    def count_epochs(code: str) -> str:
        words = [str(tensorflow_python), "-c", f"{code}print(keras.config.max_epochs())"]
        return subprocess.check_output(words, text=True).split()[-1]

    assert [count_epochs(code) for code in (late, misspelt, obeyed)] == ["None", "None", "1"]


@pytest.mark.processes
@pytest.mark.skipif(find_spec("gymnasium") is None, reason="Gymnasium is not installed")
def test_an_environment_that_is_given_a_seed_starts_alike() -> None:
    row = load_lint_rules()["ENV209"]

    def start(code: str) -> bytes:
        code = code.replace("import tensorflow as tf\n", "").replace("environment.reset", "state = environment.reset")
        return subprocess.check_output([sys.executable, "-c", f"{code}print(state)"])

    assert start(row.before) != start(row.before)
    assert start(row.after) == start(row.after)
