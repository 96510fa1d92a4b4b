# shellcheck shell=bash
# Removes a file, and returns 0 only if it is surely gone: rm -f is content with a directory that is not there, but
# that may be a file system that is not there either, and the file comes back with it. $1: path.
remove_file() { [ -d "${1%/*}/" ] && timeout -k 5 10 rm -f -- "$1" 2>/dev/null </dev/null; }
