# shellcheck shell=bash
# What the partitions are, and how many nodes of which kind are in which state in each.
#
# stdin: nothing.

# sinfo takes options from these too (sinfo(1)).
unset "${!SINFO_@}" "${!SCONTROL_@}"
rows=5000

timeout -k 2 10 scontrol -a -o show partition >"$tmp/show" 2>/dev/null </dev/null &
timeout -k 2 10 scontrol show config >"$tmp/config" 2>/dev/null </dev/null &
# Nodes that agree in all of these columns share a row, so the answer does not grow with the cluster.
timeout -k 5 25 sinfo -a -h -o '%P|%a|%l|%L|%D|%T|%c|%m|%G' >"$tmp/nodes" 2>"$tmp/err" </dev/null
code=$?
wait
if [ "$code" = 0 ] && complains "$tmp/err"; then code=1; fi
if [ "$code" != 0 ]; then
  say "REFUSED $code $(encoded_tail "$tmp/err" 2000)"
  finish
fi
# Whether a job must be within the limits of all its partitions, or of one: "ALL", "ANY" or "NO".
say "ENFORCE $(sed -n 's/^EnforcePartLimits *= *//p' "$tmp/config" | head -n 1)"
head -n "$rows" "$tmp/show" | cut -c 1-20000 | sed 's/^/SHOW /' >"$tmp/part"
say_file "$tmp/part"
head -n "$rows" "$tmp/nodes" | cut -c 1-2000 | sed 's/^/ROW /' >"$tmp/part"
say_file "$tmp/part"
finish
