from tfdeterminism import patch

patch()  # expect: ENV107
