"""`envlock lint`: what in Python code makes a TensorFlow program give other bits."""
