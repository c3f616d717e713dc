"""Message passing over a small graph of nodes."""
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(31)


class Node:
    def __init__(self, name, value):
        self.name = name
        self.value = value
        self.links = []

    def connect(self, other):
        self.links.append(other)
        other.links.append(self)


def make_graph(n=60):
    nodes = [Node(i, float(np.random.normal())) for i in range(n)]
    for _ in range(3 * n):
        a, b = np.random.choice(n, 2, replace=False)
        nodes[a].connect(nodes[b])
    return nodes


def visit_order(nodes):
    seen, order, stack = set(), [], [nodes[0]]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        order.append(node)
        stack.extend(sorted(node.links, key=lambda m: hash(m) % 101))
    return order


order = visit_order(make_graph())
cell = tf.keras.layers.GRUCell(5)
state = [tf.zeros([1, 5])]
for node in order:
    out, state = cell(tf.constant([[node.value]]), state)
print("state sum", float(tf.reduce_sum(out)))
