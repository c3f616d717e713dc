"""What runs in the user's interpreter, where there is no envlock: standard library, TensorFlow,
Python 3.8.
"""
