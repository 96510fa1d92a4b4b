# shellcheck shell=bash
# What accounting says of the runs of jobs.
#
# stdin: a line "number of jobs, most rows", then each id on a line of its own.

IFS=$'\t' read -r count most || give_up 'the list of jobs did not arrive whole'
take_lines "$tmp/ids" "$count" jobs
list=$(paste -s -d, -- "$tmp/ids")
# -D: a row for every run.
keep_for 60 sacct -D -X -P -n --delimiter=$'\037' -o JobIDRaw,State,Start,ElapsedRaw,Partition,AllocTRES,TotalCPU,JobName -j "$list" \
  >"$tmp/rows" 2>"$tmp/err" </dev/null
code=$?
if ((code == 74)); then lost; fi
if [ "$code" = 0 ] && complains "$tmp/err"; then code=1; fi
say "SACCT $code $(encoded_tail "$tmp/err" 2000)"
awk -v most="$most" '
  NR <= most { print "RUN " substr($0, 1, 1000) }
  END { if (NR > most) print "CUT" }' "$tmp/rows" >"$tmp/framed" || lost
say_file "$tmp/framed"
finish
