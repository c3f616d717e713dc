#!/bin/sh
# Make a virtual environment with the locked pip: venv.sh PYTHON FOLDER WHAT
set -eu
python=$1 folder=$2 what=$3

if ! command -v "$python" >/dev/null 2>&1; then
    echo "error: there is no $python; envlock is built with CPython 3.11 or newer" >&2
    echo "hint: install it, or name another: make PYTHON=/path/to/python3.12" >&2
    exit 1
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "error: $("$python" --version) is too old; envlock is built with CPython 3.11 or newer" >&2
    echo "hint: name another: make PYTHON=/path/to/python3.12" >&2
    exit 1
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "error: $python cannot make virtual environments" >&2
    echo "hint: install its venv module (Debian and Ubuntu: apt-get install python3-venv)" >&2
    exit 1
fi
echo "making $folder with $what" >&2
rm -rf "$folder"
"$python" -m venv "$folder"
here=$(dirname "$0")
"$folder/bin/python" -m pip install --quiet --require-hashes --requirement "$here/../requirements/installer.txt"

# Debian, Ubuntu and Fedora bring a setuptools of their own build, which no index has; who needs one installs a locked one.
own="import importlib.metadata as m, sysconfig; sysconfig.get_config_var('WHEEL_PKG_DIR') and print(m.version('setuptools'))"
if [ -n "$("$folder/bin/python" -c "$own" 2>/dev/null)" ]; then
    "$folder/bin/python" -m pip uninstall --quiet --yes setuptools
fi
