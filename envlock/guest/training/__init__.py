"""Programs for the user's interpreter: Python 3.8, standard library, and what the user has of numpy
and TensorFlow.
"""
