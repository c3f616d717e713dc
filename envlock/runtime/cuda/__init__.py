"""TensorFlow's CUDA libraries, told without loading one of them."""
