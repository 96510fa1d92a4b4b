# shellcheck shell=bash
# Removes a file, and returns 0 only if it is certainly gone. rm -f also succeeds if the directory is missing, but then the
# file system may be unmounted and the file may come back. In a process of its own, which can be killed if the file system
# hangs. $1: path.
# shellcheck disable=SC2016
remover='
  parent=${1%/*}
  if [ -d "$parent/" ]; then exec rm -f -- "$1"; fi
  # Nothing was ever staged there if its parent is not empty: an unmounted mount point is empty. Listing the parent makes an
  # NFS client ask the server, so that a missing entry is really missing.
  [ -n "$(find "${parent%/*}/" -mindepth 1 -maxdepth 1 -print -quit)" ] && [ ! -e "$parent" ]'
remove_file() { timeout -k 5 10 bash -c "$remover" remove_file "$1" >/dev/null 2>&1 </dev/null; }

# Whether a later attempt of the job was staged, or that is not known: all attempts of a job have their private files in the
# same places. $1: state directory, which ends in the number of its attempt.
# shellcheck disable=SC2016
later_attempt='
  for dir in "${1%/*}"/*; do
    number=${dir##*/}
    case $number in "" | *[!0-9]* | ??????????*) continue ;; esac
    if [ "$number" -gt "${1##*/}" ]; then exit 0; fi
  done
  exit 1'
is_superseded() {
  timeout -k 1 5 bash -c "$later_attempt" is_superseded "$1" >/dev/null 2>&1 </dev/null
  [ "$?" != 1 ]
}
