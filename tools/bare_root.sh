#!/bin/sh
# Run a command in a copy of this checkout on a bare Debian, where Python is the distribution's own:
#
#   sh tools/bare_root.sh bookworm make fast    Debian 12, Python 3.11
#   sh tools/bare_root.sh trixie make demo      Debian 13, Python 3.13
#
# Needs root on Debian or Ubuntu and a mirror (MIRROR names one). The root has python3, python3-venv, make, git and
# ca-certificates, and this machine's certificates, name resolution and settings of pip. It is made anew each time, its
# mounts are in a namespace of their own, and nothing of it is left.
#
# Processes are in a namespace of their own, too: what a command leaves running ends with it.
#
# The exit status is the command's; 75 says that there is no such root to be had here, and why.
set -eu

unavailable() {
    echo "bare root: none to be had here: $1" >&2
    exit 75
}

# The mirror that this machine's apt takes the release from, if it does.
mirror() {
    apt-get indextargets --format "\$(ORIGIN) \$(CODENAME) \$(REPO_URI)" "Created-By: Packages" 2>/dev/null |
        awk -v suite="$1" '$1 == "Debian" && $2 == suite { print $3; exit }'
}

# Into the namespace: what is mounted here exists for this process and its children only.
enter() {
    root=$1
    shift
    mount --bind "$root" "$root" # or programs in it could make no namespace of their own
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    # Not chroot: a program in it that enters a namespace of another (nsenter) would come out in this machine's root.
    cd "$root"
    mkdir old
    pivot_root . old
    umount -l /old
    rmdir /old
    exec sh -c 'cd /root/project && exec "$@"' sh "$@"
}

if [ "${1:-}" = --inside ]; then
    shift
    enter "$@"
fi
[ $# -ge 2 ] || { echo "usage: sh tools/bare_root.sh RELEASE COMMAND..." >&2; exit 2; }
suite=$1
shift

[ "$(id -u)" = 0 ] || unavailable "only the superuser can make one"
if ! command -v debootstrap >/dev/null; then
    command -v apt-get >/dev/null || unavailable "there is neither debootstrap nor apt-get"
    { apt-get -qq update && apt-get -qq install --yes --no-install-recommends debootstrap; } >/dev/null 2>&1 ||
        unavailable "apt-get cannot install debootstrap"
fi
unshare --mount true 2>/dev/null || unavailable "mounts are not allowed"

here=$(cd "$(dirname "$0")/.." && pwd)
room=$(mktemp -d "${TMPDIR:-/var/tmp}/envlock-root.XXXXXX")
trap 'rm -rf --one-file-system "$room"' EXIT
trap 'exit 130' INT TERM HUP
root=$room/root

echo "bare root: making Debian $suite, a minute or two" >&2
timeout 300 unshare --mount debootstrap --variant=minbase \
    --include=python3,python3-venv,make,git,ca-certificates "$suite" "$root" ${MIRROR:-$(mirror "$suite")} \
    >"$room/log" 2>&1 || unavailable "debootstrap says: $(tail -n 3 "$room/log" | tr '\n' ' ')"

for file in /etc/resolv.conf /etc/hosts /etc/pip.conf "${PIP_CERT:-}" "${SSL_CERT_FILE:-}" "${REQUESTS_CA_BUNDLE:-}"; do
    [ ! -f "$file" ] || install -D -m 644 "$file" "$root$file"
done
for file in .config/pip/pip.conf .pip/pip.conf; do
    [ ! -f "$HOME/$file" ] || install -D -m 644 "$HOME/$file" "$root/root/$file"
done
cp -aL /etc/ssl/certs/. "$root/etc/ssl/certs/" 2>/dev/null || true
mkdir "$root/root/project"
tar -C "$here" --exclude=./.venvs --exclude=./.hypothesis --exclude='.*_cache' --exclude=__pycache__ -cf - . |
    tar -C "$root/root/project" --no-same-owner -xf -

inside() {
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        $(env | grep -E '^(CI|PIP_[A-Z_]*|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|(https?|all|no)_proxy|(HTTPS?|ALL|NO)_PROXY)=[^[:space:]]*$') \
        unshare --mount --pid --fork --kill-child sh "$here/tools/bare_root.sh" --inside "$root" "$@"
}

inside sh -c 'python3 -m venv /tmp/probe && /tmp/probe/bin/pip --quiet download --no-deps --dest /tmp/probe hatchling' \
    >"$room/log" 2>&1 || unavailable "pip says in it: $(tail -n 1 "$room/log")"
rm -rf "$root/tmp/probe"
inside "$@"
