# shellcheck shell=bash
# Removes a file, and returns 0 only if it is surely gone: rm -f is content with a directory that is not there, but
# that may be a file system that is not there either, and the file comes back with it. A file system that hangs can be
# got away from only by ending whoever looks at it. $1: path.
# shellcheck disable=SC2016
remover='
  parent=${1%/*}
  if [ -d "$parent/" ]; then exec rm -f -- "$1"; fi
  # Nothing was ever staged there, if what is above it has something in it: the place of a file system that is not
  # mounted is empty. Looked into, a directory of NFS is asked of its server; only then is it known what it has not.
  [ -n "$(find "${parent%/*}/" -mindepth 1 -maxdepth 1 -print -quit)" ] && [ ! -e "$parent" ]'
remove_file() { timeout -k 5 10 bash -c "$remover" remove_file "$1" >/dev/null 2>&1 </dev/null; }

# Whether a later attempt of a job has been staged than the one of a state directory, or nobody can say: the attempts of a
# job have their private files in the same places. $1: state directory, which ends in the number of its attempt.
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
