import keras
import segmentation_models as sm
import tensorflow as tf

tf.config.experimental.enable_op_determinism()
model = sm.Unet("resnet34")
model.compile(keras.optimizers.Adam(), sm.losses.DiceLoss())
model.fit(images, masks)  # expect: ENV202
