# shellcheck shell=bash
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
