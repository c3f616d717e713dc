# tf: 1.15.5
import tensorflow as tf


def build(inputs, targets):
    # The cells of TensorFlow 1.0 were in a module of their own.
    cell = tf.contrib.rnn.core_rnn_cell.DropoutWrapper(  # expect: ENV204
        tf.contrib.rnn.core_rnn_cell.BasicLSTMCell(64), output_keep_prob=0.5
    )
    outputs, _ = tf.contrib.legacy_seq2seq.embedding_rnn_seq2seq(inputs, targets, cell, 9, 9, 64)
    return outputs


loss = tf.reduce_mean(build([tf.zeros([4])], [tf.ones([4])])[0])
step = tf.train.AdamOptimizer().minimize(loss)  # expect: ENV202
with tf.Session() as session:
    session.run(step)
