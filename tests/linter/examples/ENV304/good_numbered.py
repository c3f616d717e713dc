import numpy as np


def group(nodes, adjacent):
    numbers = {node: None for node in nodes}

    def visit(node, number):
        if numbers[node] is None:
            numbers[node] = number
            for other in adjacent[node]:
                visit(other, number)

    for at in range(len(nodes)):
        visit(nodes[at], at)
    np.save("numbers", list(set(numbers.values())))
