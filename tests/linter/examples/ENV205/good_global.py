import numpy

numpy.random.seed(1)
print(numpy.random.rand(3), numpy.random.get_state())
