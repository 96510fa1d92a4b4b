# shellcheck shell=bash
# Checks cached images, and removes damaged ones whose replacement is whole.
#
# stdin: a line "number of files, number of removals", then each path on a line of its own, then for each removal a line
# "index of the replacement, when the file was found damaged, path".

IFS=$'\t' read -r count removals || give_up 'the list of files did not arrive whole'
take_lines "$tmp/asked" "$((count + removals))" files
head -n "$count" -- "$tmp/asked" >"$tmp/paths" || lost
tail -n "$removals" -- "$tmp/asked" >"$tmp/superseded" || lost
index=0 whole=()
while IFS= read -r path; do
  # A file system that hangs would take this long for each file.
  if ((SECONDS >= 40)); then
    say "IMAGE $index unread"
  elif whole_image "$path"; then
    say "IMAGE $index whole"
    whole[index]=1
  elif [ -e "$path" ]; then
    say "IMAGE $index broken"
  else
    say "IMAGE $index absent"
  fi
  index=$((index + 1))
done <"$tmp/paths"

# Removes a file that was not written since. $1: the time, $2: file.
# shellcheck disable=SC2016
remover='[ -f "$2" ] && [ "$(stat -c %Y -- "$2")" -le "$1" ] && exec rm -f -- "$2"'
while IFS=$'\t' read -r index at path; do
  if [ -n "${whole[index]-}" ] && ((SECONDS < 65)); then
    timeout -k 1 5 bash -c "$remover" remover "$at" "$path" >/dev/null 2>&1 </dev/null
  fi
done <"$tmp/superseded"
finish
