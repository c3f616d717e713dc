import tensorflow as tf
import threading
m = tf.keras.Sequential([tf.keras.layers.Dense(1)])
tf.keras.utils.set_random_seed(1)
def work(n):
    m.train_on_batch(n, n)  # expect: ENV202, ENV307
for i in range(4):
    threading.Thread(target=work, args=(i,)).start()
