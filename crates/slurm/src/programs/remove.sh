# shellcheck shell=bash
# Removes files.
#
# stdin: a line "number of files", then each path on a line of its own.

read -r count || give_up 'the list of files did not arrive whole'
cat >"$tmp/paths"
if [ "$(wc -l <"$tmp/paths")" != "$count" ]; then give_up 'the list of files did not arrive whole'; fi
place=0
while IFS= read -r path; do
  # A file system that hangs would take as long for each of them.
  if ((SECONDS >= 30)) || ! remove_file "$path"; then say "KEPT $place"; fi
  place=$((place + 1))
done <"$tmp/paths"
finish
