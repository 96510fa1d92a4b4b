# shellcheck shell=bash
# All runs of jobs that were requeued, in their order.
#
# stdin: a line "number of jobs", then each id on a line of its own.

read -r count || give_up 'the list of jobs did not arrive whole'
take_lines "$tmp/ids" "$count" jobs
list=$(paste -s -d, -- "$tmp/ids")
# -D: a row for every run.
keep_for 30 sacct -D -X -P -n --delimiter=$'\037' -o JobIDRaw,State,NodeList,JobName -j "$list" \
  >"$tmp/rows" 2>"$tmp/err" </dev/null
code=$?
if ((code == 74)); then lost; fi
if [ "$code" = 0 ] && complains "$tmp/err"; then code=1; fi
say "SACCT $code $(encoded_tail "$tmp/err" 2000)"
awk '{ print "RUN " substr($0, 1, 3000) }' "$tmp/rows" >"$tmp/framed" || lost
say_file "$tmp/framed"
finish
