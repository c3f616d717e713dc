import zlib


class Key:
    def __init__(self, name):
        self.name = name

    def __hash__(self):
        return hash(self.name) % 7


def bucket(name):
    return zlib.crc32(name.encode()) % 100


def own(hash):
    return hash("x") % 3


cached = {hash("x"): 1}
