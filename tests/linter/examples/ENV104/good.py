import os
import subprocess
import sys

if os.environ.get("PYTHONHASHSEED") != "0":
    os.environ["PYTHONHASHSEED"] = "0"
    subprocess.run([sys.executable, *sys.argv], check=True)
