def broken(:  # expect: ENV001
    pass
