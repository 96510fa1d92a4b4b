# shellcheck shell=bash
# What accounting says of the runs of jobs.
#
# stdin: a line "number of jobs, most rows", then each id on a line of its own.

IFS=$'\t' read -r count most || give_up 'the list of jobs did not arrive whole'
take_lines "$tmp/ids" "$count" jobs
list=$(paste -s -d, -- "$tmp/ids")
# Only steps have the memory, and their rows follow that of their run: each run gets the most of its steps.
# shellcheck disable=SC2016
reduce='
  function tell() { if (row != "" && ++rows <= most) print "RUN " memory substr(row, 1, 1000) }
  $2 ~ /[.]/ { if ($1 != "" && int($1) >= int(memory)) memory = int($1); next }
  { tell(); memory = ""; row = substr($0, length($1) + 1) }
  END { tell(); if (rows > most) print "CUT" }'
# -D: a row for every run.
# shellcheck disable=SC2016
keep_for 60 bash -c 'set -o pipefail; sacct "${@:3}" </dev/null | awk -F"\037" -v most="$1" "$2"' sacct "$most" "$reduce" \
  -D -P -n --units=K --delimiter=$'\037' -o MaxRSS,JobIDRaw,State,Start,ElapsedRaw,Partition,AllocTRES,TotalCPU,JobName -j "$list" \
  >"$tmp/framed" 2>"$tmp/err"
code=$?
if ((code == 74)); then lost; fi
if [ "$code" = 0 ] && complains "$tmp/err"; then code=1; fi
say "SACCT $code $(encoded_tail "$tmp/err" 2000)"
say_file "$tmp/framed"
finish
