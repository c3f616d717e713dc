"""Code that runs in the user's interpreter, where envlock is not installed: standard library,
TensorFlow, Python 3.8.
"""
