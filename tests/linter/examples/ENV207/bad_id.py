import random
object_ = object()
random.seed(id(object_))  # expect: ENV207
print(random.random())
