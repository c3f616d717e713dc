"""TensorFlow's CUDA libraries, identified without loading one."""
