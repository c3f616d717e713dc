import tensorflow as tf

tf.config.experimental.enable_op_determinism()
counts = tf.math.bincount([1, 1, 2], weights=[0.1, 0.2, 0.3])  # expect: ENV401


def step(image, boxes):
    with tf.GradientTape() as tape:
        return tf.image.crop_and_resize(image, boxes, [0], [2, 2])  # expect: ENV401
