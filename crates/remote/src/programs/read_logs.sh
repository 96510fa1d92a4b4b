# shellcheck shell=bash
# Reads parts of logs: the last lines, or bytes from an offset, and the names of logs in a directory. It reads only the
# requested bytes, however long a log is. And searches logs.
#
# stdin: a line "number of questions"; then each question, a line
#   lines|offset, how many lines or which offset, at most so many bytes, number of paths   and each path on its own line
#   files, 0, at most so many names, 1                                                     and the directory
#   search, which offset, at most so many hits, number of logs                             and the lines
#     text|expression, and any-case     the pattern     and for each log the number of paths and each path
# The first of the paths that exists is read.

# The log may grow while it is read: bytes past the size at the start belong to the next call.
slice() { tail -c "+$(($1 + 1))" -- "$path" 2>/dev/null </dev/null | head -c "$2"; }
length_of() { stat -c %s -- "$1" </dev/null; }

# Reads growing blocks from the end until one holds more than the requested lines.
last_lines() {
  local block=65536 taken
  for (( ; ; block *= 8)); do
    block=$((block < limit ? block : limit))
    start=$((size > block ? size - block : 0))
    slice "$start" "$((size - start))" >"$tmp/block"
    tail -n "$from" -- "$tmp/block" >"$tmp/part" </dev/null
    taken=$(length_of "$tmp/block")
    start=$((start + taken - $(length_of "$tmp/part")))
    if [ "$(length_of "$tmp/part")" -lt "$taken" ] || ((block >= limit || block >= size)); then return; fi
  done
}

say_part() {
  local index=$1 place=-1 candidate path='' size inode start left at
  for ((at = 0; at < paths; at++)); do
    IFS= read -r candidate || give_up 'the list of paths did not arrive whole'
    if [ "$place" = -1 ] && [ -f "$candidate" ]; then place=$at path=$candidate; fi
  done
  if [ "$place" = -1 ]; then
    say "MISSING $index"
    return
  fi
  # The file may disappear at any moment.
  if ! read -r size inode < <(stat -L -c '%s %i' -- "$path" 2>"$tmp/err" </dev/null); then
    say "MISSING $index"
    return
  fi
  if [ ! -r "$path" ]; then
    say "UNREADABLE $index"
    return
  fi
  if [ "$kind" = lines ]; then
    last_lines
  else
    start=$((from < size ? from : size))
    left=$((size - start))
    slice "$start" "$((left < limit ? left : limit))" >"$tmp/part"
  fi
  say "LOG $index $place $size $inode $start"
  say "DATA $(encoded_tail "$tmp/part" "$limit")"
}

say_files() {
  local index=$1 directory name
  IFS= read -r directory || give_up 'the list of paths did not arrive whole'
  # A job may leave any number of files there: a pattern of the shell would hold all their names.
  while IFS= read -r name; do
    say "FILE $index $name"
  done < <(find "$directory/" -maxdepth 1 -regextype posix-extended -regex '.*/[0-9]{1,6}\.(out|err)' -printf '%f\n' \
    2>/dev/null </dev/null | sort -t. -k2,2r -k1,1 | head -n "$limit")
}

IFS= read -r count || give_up 'the number of questions did not arrive'
for ((index = 0; index < count; index++)); do
  IFS=$'\t' read -r kind from limit paths || give_up 'the list of questions did not arrive whole'
  case $kind in
    files) say_files "$index" ;;
    search) say_search "$index" "$from" "$limit" "$paths" ;;
    *) say_part "$index" ;;
  esac
done
finish
