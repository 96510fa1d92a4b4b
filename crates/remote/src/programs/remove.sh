# shellcheck shell=bash
# Removes files with secrets of jobs, unless a later attempt has replaced them.
#
# stdin: a line "number of attempts to close, number of files"; for each attempt a line "state directory"; for each file a
# line "state directory of the attempt, path".

IFS=$'\t' read -r attempts count || give_up 'the list of files did not arrive whole'
take_lines "$tmp/asked" "$((attempts + count))" files
head -n "$attempts" -- "$tmp/asked" >"$tmp/attempts"
tail -n "$count" -- "$tmp/asked" >"$tmp/files"

# Takes the claim of an attempt, so that no batch script can take it. Prints who has it then. An attempt without a directory was
# never staged, if the base directory is there: an unmounted mount point is empty. $1: state directory.
# shellcheck disable=SC2016
closer='
  is_missing() { [ -n "$(find "${1%/*/*/*}/" -mindepth 1 -maxdepth 1 -print -quit)" ] && [ ! -e "$1" ]; }
  if ln -sT no-owner "$1/run" || is_missing "$1"; then echo no-owner; else readlink -- "$1/run"; fi'

# The files of an attempt that is not closed stay: its script may still begin.
declare -A open=()
place=0
while IFS= read -r state; do
  holder=''
  if ((SECONDS < 15)); then holder=$(timeout -k 1 5 bash -c "$closer" closer "$state" 2>/dev/null </dev/null); fi
  if [ "$holder" != no-owner ]; then open[$state]=1; fi
  case $holder in
    '' | 0* | *[!0-9]* | ???????????*) ;;
    *) say "HELD $place $holder" ;;
  esac
  place=$((place + 1))
done <"$tmp/attempts"

place=0 last='' superseded=0
while IFS=$'\t' read -r state path; do
  # A file system that hangs would take as long for each of them.
  if ((SECONDS >= 30)); then
    say "KEPT $place"
  else
    if [ "$state" != "$last" ]; then
      last=$state superseded=${open[$state]-0}
      if is_superseded "$state"; then superseded=1; fi
    fi
    if ((superseded)) || ! remove_file "$path"; then say "KEPT $place"; fi
  fi
  place=$((place + 1))
done <"$tmp/files"
finish
