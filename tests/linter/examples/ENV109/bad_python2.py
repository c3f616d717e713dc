import sys

import tensorflow as tf

data = tf.data.Dataset.range(9).shuffle(9)  # expect: ENV203
try:
    print "loss", 0.5  # expect: ENV109
    print >>sys.stderr, "accuracy", (0.5,
        0.75)
except ValueError, error:
	raise RuntimeError, "tabs are eight columns"
exec "x = 1"
print
