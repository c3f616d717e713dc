"""Notebooks: their cells are one program, magics are passed over, and a finding names the cell and the line in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envlock.linter.files import find
from envlock.linter.linter import Settings, lint

LATEST = Settings("2.21.0")
CELLS = [
    ("markdown", "# A title with set(words)"),
    (
        "code",
        "%matplotlib inline\n!pip install \\\n  x \\\n  z\npip install y\nimport numpy as np\nimport tensorflow as tf",
    ),
    ("code", "%%bash\nls | head"),
    ("code", "%%time\nfiles = !ls\nwords = set(text)\nif words:\n    %timeit f(x)\nnp.mean?"),
    ("code", "index = {w: i for i, w in enumerate(words)}\nawait show(index)"),
    ("code", "d = tf.data.Dataset.range(9).shuffle(9)  # envlock: ignore[ENV203] only looked at"),
    ("code", "    x = 1\n    y = 2"),
    ("code", "np.save('x', [1 %\n 2])\nnp.random.rand(3)"),
]


def notebook(cells: list[tuple[str, str]], language: str = "python") -> str:
    """Return a notebook as Jupyter writes it: sources are lists of lines."""
    written = [{"cell_type": kind, "source": source.splitlines(keepends=True)} for kind, source in cells]
    return json.dumps({"cells": written, "metadata": {"kernelspec": {"language": language}}, "nbformat": 4})


@pytest.mark.parametrize(
    ("metadata", "is_read"),
    [
        ({}, True),
        ({"kernelspec": {"language": "julia"}}, False),
        ({"kernelspec": {"language": ""}, "language_info": {"name": "python"}}, True),
        ({"kernelspec": {"name": "ir"}, "language_info": {"name": "R"}}, False),
    ],
)
def test_the_language_is_that_of_the_kernel_or_of_the_last_run(
    metadata: dict[str, object], is_read: bool, tmp_path: Path
) -> None:
    document = {**json.loads(notebook(CELLS)), "metadata": metadata}
    assert bool(places(tmp_path, json.dumps(document))) is is_read


def places(folder: Path, text: str) -> list[tuple[str, int, str]]:
    """Return rule, line and message of what is found in a notebook."""
    (folder / "a.ipynb").write_text(text)
    return [(each.rule, each.where.line, each.message) for each in lint(find([str(folder)]), LATEST)]


def test_a_finding_names_the_cell_and_the_line_in_it(tmp_path: Path) -> None:
    assert places(tmp_path, notebook(CELLS)) == [
        ("ENV205", 3, "cell 8: numpy.random.rand draws from NumPy's global generator, which nothing seeds"),
        ("ENV304", 3, "cell 4: the order of a set differs from process to process, and 1 more (cell 5: 1)"),
    ]


def test_a_seed_in_an_imported_file_counts_and_a_notebook_is_never_imported(tmp_path: Path) -> None:
    (tmp_path / "seeding.py").write_text("import tensorflow as tf\n\ntf.keras.utils.set_random_seed(1)\n")
    shuffle = "import tensorflow as tf\nimport seeding\nd = tf.data.Dataset.range(9).shuffle(9)"
    assert places(tmp_path, notebook([("code", shuffle)])) == []
    (tmp_path / "seeding.py").rename(tmp_path / "seeding.ipynb")
    (tmp_path / "seeding.ipynb").write_text(notebook([("code", "import tensorflow as tf\ntf.random.set_seed(1)")]))
    assert [rule for rule, _, _ in places(tmp_path, notebook([("code", shuffle)]))] == ["ENV203"]


def test_the_other_places_of_one_cause_are_listed_by_cell(tmp_path: Path) -> None:
    first = "import numpy as np\nx = np.random.rand(3)\ny = np.random.rand(3)"
    then = "z = np.random.rand(3)\nnp.save('all', x + y + z)"
    [(_, line, message)] = places(tmp_path, notebook([("code", first), ("markdown", "# Then"), ("code", then)]))
    assert line == 2
    assert message.endswith(", which nothing seeds, and 2 more (cell 1: 3; cell 3: 1)")


def test_a_notebook_of_python_2_is_read(tmp_path: Path) -> None:
    draw = "import numpy as np\nprint 'drawing'\nnp.save('x', np.random.rand(3))"
    assert [(rule, line) for rule, line, _ in places(tmp_path, notebook([("code", draw)]))] == [
        ("ENV109", 2),
        ("ENV205", 3),
    ]


def test_what_is_no_notebook_of_python_is_a_finding_or_nothing(tmp_path: Path) -> None:
    assert places(tmp_path, notebook([("code", "library(keras)\nx <- 1")], "R")) == []
    bad = {
        "[]": "it is not a notebook: it has no cells",
        "[" * 100_000: "it is not a notebook: it is nested too deeply",
        "{": "it is not a notebook: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        notebook(
            [("code", "x = 1"), ("code", "y = 2\n3 x")]
        ): "cell 2: it is not valid Python for this interpreter: invalid syntax",
    }
    assert {text: [found[2] for found in places(tmp_path, text)] for text in bad} == {t: [m] for t, m in bad.items()}
