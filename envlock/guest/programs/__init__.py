"""What really runs of a program: the graphs that TensorFlow makes of it, what XLA compiles, and what
runs eagerly.
"""
