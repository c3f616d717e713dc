print("this is Python 3")
