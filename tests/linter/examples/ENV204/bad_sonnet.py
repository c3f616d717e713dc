# tf: 1.15.5
import sonnet as snt
import tensorflow as tf

core = snt.LSTM(64)  # expect: ENV204
readout = snt.Linear(3, initializers={"w": tf.zeros_initializer()})
state = core.initial_state(8)
outputs, _ = core(tf.zeros([8, 4]), state)
loss = tf.reduce_sum(readout(outputs))
step = tf.train.AdamOptimizer().minimize(loss)  # expect: ENV202
