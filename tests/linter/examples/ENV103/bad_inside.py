import os


def run():
    import keras

    os.environ["KERAS_BACKEND"] = "tensorflow"  # expect: ENV103
    return keras
