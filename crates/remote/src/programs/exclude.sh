# shellcheck shell=bash
# Sets the excluded nodes of jobs in the queue.
#
# stdin: a line "number of jobs"; for each a line "index, id, name, nodes".

read -r count || give_up 'the list of jobs did not arrive whole'
take_lines "$tmp/jobs" "$count" jobs
while IFS=$'\t' read -r index id name nodes; do
  code=124
  : >"$tmp/err"
  # A controller that was reset gives ids again, so only a job of our name is changed.
  # An array has several rows, all with its name.
  if ((SECONDS < 60)) && [ "$(timeout -k 5 20 squeue --me -h -j "$id" -o %j 2>"$tmp/err" </dev/null | uniq)" = "$name" ]; then
    timeout -k 5 20 scontrol update "JobId=$id" "ExcNodeList=$nodes" >/dev/null 2>"$tmp/err" </dev/null
    code=$?
    # Of an array, scontrol tells each task, also those that have begun: `ID_0-2: Job is no longer pending execution`.
    if ((code != 0)) && grep -qx "${id}_.*: No error" "$tmp/err" &&
      ! grep -qvxE "${id}_.*: (No error|Job is no longer pending execution)" "$tmp/err"; then
      code=0
    fi
  fi
  say "DONE $index $code $(encoded_tail "$tmp/err" 1000)"
done <"$tmp/jobs"
finish
