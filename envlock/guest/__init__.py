"""Programs for other interpreters (Python 3.8) and, in `image/`, for images (3.6); `launch.py`
starts them.

They use the standard library, the runtime half and each other, and TensorFlow or NumPy if their
docstrings say so.
"""
