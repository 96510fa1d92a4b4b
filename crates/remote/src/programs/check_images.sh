# shellcheck shell=bash
# Checks cached images.
#
# stdin: a line "number of files", then each path on a line of its own.

read -r count || give_up 'the list of files did not arrive whole'
take_lines "$tmp/paths" "$count" files
index=0
while IFS= read -r path; do
  # A file system that hangs would take this long for each file.
  if ((SECONDS >= 40)); then
    say "IMAGE $index unread"
  elif whole_image "$path"; then
    say "IMAGE $index whole"
  elif [ -e "$path" ]; then
    say "IMAGE $index broken"
  else
    say "IMAGE $index absent"
  fi
  index=$((index + 1))
done <"$tmp/paths"
finish
