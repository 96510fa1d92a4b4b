# shellcheck shell=bash
# Removes files with secrets of jobs, unless a later attempt has replaced them.
#
# stdin: a line "number of attempts to close, number of files"; for each attempt a line "state directory"; for each file a
# line "state directory of the attempt, path".

IFS=$'\t' read -r attempts count || give_up 'the list of files did not arrive whole'
take_lines "$tmp/asked" "$((attempts + count))" files
head -n "$attempts" -- "$tmp/asked" >"$tmp/attempts"
tail -n "$count" -- "$tmp/asked" >"$tmp/files"

# Takes the claim of an attempt, so that no batch script can take it. Prints the holder if it is taken. An attempt without a
# directory was never staged. $1: state directory.
# shellcheck disable=SC2016
closer='ln -sT no-owner "$1/run" 2>/dev/null || readlink -- "$1/run"'

declare -A held=()
place=0
while IFS= read -r state; do
  if ((SECONDS < 15)); then
    holder=$(timeout -k 1 5 bash -c "$closer" closer "$state" 2>/dev/null </dev/null)
    case $holder in
      '' | 0* | *[!0-9]* | ???????????*) ;;
      *) held[$state]=1 && say "HELD $place $holder" ;;
    esac
  fi
  place=$((place + 1))
done <"$tmp/attempts"

place=0 last='' superseded=0
while IFS=$'\t' read -r state path; do
  # A file system that hangs would take as long for each of them.
  if ((SECONDS >= 30)); then
    say "KEPT $place"
  else
    if [ "$state" != "$last" ]; then
      last=$state superseded=${held[$state]-0}
      if is_superseded "$state"; then superseded=1; fi
    fi
    if ((superseded)) || ! remove_file "$path"; then say "KEPT $place"; fi
  fi
  place=$((place + 1))
done <"$tmp/files"
finish
