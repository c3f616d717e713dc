import numpy as np


def prepare():
    np.random.seed(1)


def main():
    np.save("x", np.random.rand(3))  # expect: ENV205


if __name__ == "__main__":
    main()
