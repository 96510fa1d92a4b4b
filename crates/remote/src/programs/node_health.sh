# shellcheck shell=bash
# What Slurm says of nodes.
#
# stdin: a line "number of nodes", then each name on a line of its own.

read -r count || give_up 'the list of nodes did not arrive whole'
take_lines "$tmp/nodes" "$count" nodes
if ((count == 0)); then
  say 'SINFO 0'
  finish
fi
list=$(paste -s -d, -- "$tmp/nodes")
keep_for 30 sinfo -a -h -N -n "$list" -o '%N|%T|%E' >"$tmp/rows" 2>"$tmp/err" </dev/null
code=$?
if [ "$code" = 0 ] && complains "$tmp/err"; then code=1; fi
say "SINFO $code"
# A node is listed once for each of its partitions.
awk '!seen[$0]++ { print "NODE " substr($0, 1, 400) }' "$tmp/rows" >"$tmp/framed" || lost
say_file "$tmp/framed"
finish
