print "this is Python 2"  # expect: ENV001
