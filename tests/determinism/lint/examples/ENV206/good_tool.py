import random
import subprocess

subprocess.run(["launch", random.choice(["a", "b"])])
