# shellcheck shell=bash
# A part of a log: the last lines, or bytes from an offset. Only the bytes asked for are read, however long the log is.
#
# stdin: a line "number of paths, lines or offset, how many lines or which offset, at most so many bytes"; then each
# path on a line of its own. The first that exists is read.

IFS=$'\t' read -r count kind from limit || give_up 'the list of paths did not arrive whole'
index=0
for (( ; index < count; index++)); do
  IFS= read -r path || give_up 'the list of paths did not arrive whole'
  if [ -f "$path" ]; then break; fi
done
if ((index == count)); then
  say MISSING
  finish
fi
if ! size=$(stat -L -c %s -- "$path" 2>"$tmp/err" </dev/null); then give_up "$(cat "$tmp/err")"; fi

# The log may grow while it is read: what is past its size of a moment ago belongs to the next call.
slice() { tail -c "+$(($1 + 1))" -- "$path" 2>/dev/null </dev/null | head -c "$2"; }

if [ "$kind" = lines ]; then
  start=$((size > limit ? size - limit : 0))
  slice "$start" "$((size - start))" | tail -n "$from" >"$tmp/part"
  start=$((size - $(stat -c %s "$tmp/part")))
else
  start=$((from < size ? from : size))
  left=$((size - start))
  slice "$start" "$((left < limit ? left : limit))" >"$tmp/part"
fi
say "LOG $index $size $start"
say "DATA $(encoded_tail "$tmp/part" "$limit")"
finish
