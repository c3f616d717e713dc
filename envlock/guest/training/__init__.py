"""Programs for the user's interpreter: Python 3.8, standard library, and NumPy and TensorFlow if
the user has them.
"""
