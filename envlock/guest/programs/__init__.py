"""What a program really runs: its TensorFlow graphs, what XLA compiles, and the eager operations."""
