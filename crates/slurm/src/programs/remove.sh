# shellcheck shell=bash
# Removes private files of jobs, unless a later attempt has put its own there.
#
# stdin: a line "number of files", then for each a line "state directory of the attempt, path".

read -r count || give_up 'the list of files did not arrive whole'
cat >"$tmp/files"
if [ "$(wc -l <"$tmp/files")" != "$count" ]; then give_up 'the list of files did not arrive whole'; fi
place=0 last='' superseded=0
while IFS=$'\t' read -r state path; do
  # A file system that hangs would take as long for each of them.
  if ((SECONDS >= 30)); then
    say "KEPT $place"
  else
    if [ "$state" != "$last" ]; then
      last=$state superseded=0
      if is_superseded "$state"; then superseded=1; fi
    fi
    if ((superseded)) || ! remove_file "$path"; then say "KEPT $place"; fi
  fi
  place=$((place + 1))
done <"$tmp/files"
finish
