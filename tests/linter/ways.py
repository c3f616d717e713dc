"""Forty ways to write one draw, seed or order: what carries a source to the place where it counts.

Each way is a program with holes: `IMPORT` for what the source needs, `SOURCE` for the expression, `SINK` for what
makes it count, a function of one value.
"""

from __future__ import annotations

from dataclasses import dataclass

SEEDED = "import tensorflow as tf\ntf.keras.utils.set_random_seed(7)\n"


@dataclass(frozen=True)
class Source:
    """What is written in many ways: the rule that finds it, what it needs, the expression, and what uses it."""

    rule: str
    imports: str
    expression: str
    sink: str = "np.save('x', {})"


SOURCES = {
    "numpy": Source("ENV205", "", "np.random.rand(3)"),
    "python": Source("ENV206", "import random\n", "random.random()"),
    "tensorflow": Source("ENV204", "import tensorflow as tf\n", "tf.random.normal([3])"),
    "generator": Source("ENV205", "", "np.random.default_rng().random()"),
    "shuffle": Source("ENV203", "import tensorflow as tf\n", "tf.data.Dataset.range(9).shuffle(9)", "list({})"),
    "entropy": Source("ENV208", "import tensorflow as tf\n", "tf.random.get_global_generator()", "list({})"),
    "environment": Source("ENV209", "import gymnasium as gym\n", "gym.make('CartPole-v1')", "list({})"),
    "hash": Source("ENV305", "", "hash('a' + str(np)) % 9"),
    "switch": Source(
        "ENV302", SEEDED, "tf.data.Dataset.range(9).map(abs, num_parallel_calls=2, deterministic=False)", "list({})"
    ),
    "map": Source(
        "ENV301",
        SEEDED,
        "tf.data.Dataset.range(9).map(lambda x: x + tf.random.uniform([]), num_parallel_calls=2)",
        "list({})",
    ),
}

WAYS = {
    "in place": "SINK(SOURCE)\n",
    "a name": "x = SOURCE\nSINK(x)\n",
    "two names": "x = SOURCE\ny = x\nSINK(y)\n",
    "an annotated name": "x: object = SOURCE\nSINK(x)\n",
    "a walrus": "if (x := SOURCE) is not None:\n    SINK(x)\n",
    "a tuple": "x, y = SOURCE, 1\nSINK(x)\n",
    "a swap": "x, y = 1, SOURCE\nx, y = y, x\nSINK(x)\n",
    "a function": "def f():\n    return SOURCE\nSINK(f())\n",
    "two functions": "def f():\n    return SOURCE\ndef g():\n    return f()\nSINK(g())\n",
    "a function with a name": "def f():\n    x = SOURCE\n    return x\nSINK(f())\n",
    "an inner function": "def f():\n    def g():\n        return SOURCE\n    return g()\nSINK(f())\n",
    "a closure": "def f():\n    def g():\n        return SOURCE\n    return g\nSINK(f()())\n",
    "a lambda": "f = lambda: SOURCE\nSINK(f())\n",
    "an argument": "def f(x):\n    SINK(x)\nf(SOURCE)\n",
    "a keyword": "def f(*, x):\n    SINK(x)\nf(x=SOURCE)\n",
    "several arguments": "def f(*xs):\n    SINK(xs[0])\nf(SOURCE, 1)\n",
    "several keywords": "def f(**xs):\n    SINK(xs['x'])\nf(x=SOURCE)\n",
    "spread arguments": "def f(x, y):\n    SINK(x)\nf(*(SOURCE, 1))\n",
    "spread keywords": "def f(x, y):\n    SINK(x)\nf(**{'x': SOURCE, 'y': 1})\n",
    "a default": "def f(x=SOURCE):\n    SINK(x)\nf()\n",
    "a global": "x = None\ndef f():\n    global x\n    x = SOURCE\nf()\nSINK(x)\n",
    "a branch": "import sys\nif len(sys.argv) > 1:\n    x = SOURCE\nelse:\n    x = None\nSINK(x)\n",
    "a choice": "import sys\nSINK(SOURCE if len(sys.argv) > 1 else None)\n",
    "a try": "try:\n    x = SOURCE\nexcept ValueError:\n    x = None\nSINK(x)\n",
    "a with": "import contextlib\nwith contextlib.suppress(ValueError):\n    SINK(SOURCE)\n",
    "a loop": "for _ in range(3):\n    x = SOURCE\n    SINK(x)\n",
    "a while": "n = 0\nwhile n < 3:\n    SINK(SOURCE)\n    n += 1\n",
    "an attribute": "class A:\n    def __init__(self):\n        self.x = SOURCE\nSINK(A().x)\n",
    "a method": "class A:\n    def f(self):\n        return SOURCE\nSINK(A().f())\n",
    "a property": "class A:\n    @property\n    def x(self):\n        return SOURCE\nSINK(A().x)\n",
    "a static method": "class A:\n    @staticmethod\n    def f():\n        return SOURCE\nSINK(A.f())\n",
    "a class method": "class A:\n    @classmethod\n    def f(cls):\n        return SOURCE\nSINK(A.f())\n",
    "a parent class": "class A:\n    def f(self):\n        return SOURCE\nclass B(A):\n    pass\nSINK(B().f())\n",
    "super": (
        "class A:\n    def f(self):\n        return SOURCE\n"
        "class B(A):\n    def f(self):\n        return super().f()\nSINK(B().f())\n"
    ),
    "an object that is called": "class A:\n    def __call__(self):\n        return SOURCE\nSINK(A()())\n",
    "functools.partial": "import functools\ndef f(n):\n    return SOURCE\ng = functools.partial(f, 1)\nSINK(g())\n",
    "a table of functions": "def f():\n    return SOURCE\ntable = {'a': f}\nSINK(table['a']())\n",
    "getattr": "class A:\n    def f(self):\n        return SOURCE\nSINK(getattr(A(), 'f')())\n",
    "a cached function": "import functools\n@functools.lru_cache\ndef f():\n    return SOURCE\nSINK(f())\n",
    "a table": "table = {'a': SOURCE}\nSINK(table['a'])\n",
}


def write_program(way: str, source: str) -> str:
    """Return a program in which one source is written in one way."""
    given = SOURCES[source]
    code = WAYS[way].replace("SOURCE", given.expression)
    while "SINK(" in code:
        start = code.index("SINK(")
        end = find_end(code, start + len("SINK("))
        value = code[start + len("SINK(") : end]
        code = f"{code[:start]}{given.sink.replace('{}', value)}{code[end + 1 :]}"
    return f"import numpy as np\n{given.imports}{code}"


def find_end(code: str, start: int) -> int:
    """Return where the parenthesis that opened before `start` closes."""
    depth = 1
    for at in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return at
    raise ValueError(code)
