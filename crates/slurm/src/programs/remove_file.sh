# shellcheck shell=bash
# Removes a file, and returns 0 only if it is surely gone: rm -f is content with a directory that is not there, but
# that may be a file system that is not there either, and the file comes back with it. $1: path.
remove_file() {
  local parent=${1%/*}
  if [ -d "$parent/" ]; then
    timeout -k 5 10 rm -f -- "$1" 2>/dev/null </dev/null
  else
    # Nothing was ever staged there, if what is above it has something in it: the place of a file system that is not
    # mounted is empty. Looked into, a directory of NFS is asked of its server; only then is it known what it has not.
    [ -n "$(timeout -k 5 10 find "${parent%/*}/" -mindepth 1 -maxdepth 1 -print -quit 2>/dev/null </dev/null)" ] \
      && [ ! -e "$parent" ]
  fi
}
