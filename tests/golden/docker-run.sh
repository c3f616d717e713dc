#!/bin/sh
# Written by envlock 0.1.0. Without arguments, the command of the image runs.
# The entrypoint of the image verifies, and then runs the command: give a command, and keep the entrypoint.
exec docker run --rm --platform=linux/amd64 --shm-size=1073741824 --cpuset-cpus=0-1 --gpus=2 --cap-drop=ALL --security-opt=no-new-privileges ghcr.io/team/train@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa "$@"
