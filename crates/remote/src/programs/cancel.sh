# shellcheck shell=bash
# Cancels jobs, by id and name or by name alone. A job that is not in the queue counts as canceled.
#
# stdin: a line "number of jobs, number of names"; for each job a line "id, name, indices of its array or -", then each name on a line of its own.

IFS=$'\t' read -r jobs names || give_up 'the list of jobs did not arrive whole'
take_lines "$tmp/asked" "$((jobs + names))" jobs
if ((jobs + names == 0)); then finish; fi

# A controller that was reset gives ids again, so only jobs in the queue under our name are canceled. A name may hold any
# character, so it ends at a random word.
nonce="$RANDOM$RANDOM$RANDOM$RANDOM"
# With -a, because a hidden partition hides our own jobs too. %F: tasks have the id of their array.
keep_for 30 squeue --me -a -h -t all -o "$nonce|%T|%F|%j|$nonce" >"$tmp/queue" 2>"$tmp/err" </dev/null
code=$?
if ((code == 74)); then lost; fi
if [ "$code" = 0 ] && complains "$tmp/err"; then code=1; fi
if [ "$code" != 0 ]; then
  say "UNSEEN $code $(encoded_tail "$tmp/err" 2000)"
  finish
fi
awk -F'\t' -v nonce="$nonce" -v jobs="$jobs" '
  pass == 1 { if (FNR <= jobs) job[$1 "|" $2] = $3; else name[$1]; next }
  {
    row = $0
    if (index(row, nonce "|") != 1 || !sub("[|]" nonce "$", "", row)) next
    row = substr(row, length(nonce) + 2)
    # -a also shows jobs that run elsewhere in a federation.
    if (sub("^REVOKED[|]", "", row)) next
    sub("^[^|]*[|]", "", row)
    at = index(row, "|")
    id = substr(row, 1, at - 1)
    if (!(row in job || substr(row, at + 1) in name) || id !~ /^[1-9][0-9]*$/ || seen[id]++) next
    # Those that are known by name alone go first: Slurm may start them when the others end.
    if (row in job) rest = rest id (job[row] != "-" ? "_[" job[row] "]" : "") "\n"
    else print id
  }
  END { printf "%s", rest }' pass=1 "$tmp/asked" pass=2 "$tmp/queue" >"$tmp/ids" || lost

while mapfile -t -n 500 chunk && ((${#chunk[@]} > 0)); do
  code=124
  : >"$tmp/err"
  if ((SECONDS < 60)); then
    timeout -k 5 30 scancel "${chunk[@]}" 2>"$tmp/err" >/dev/null </dev/null
    code=$?
  fi
  if [ "$code" != 0 ]; then say "REFUSED $code $(encoded_tail "$tmp/err" 60000)"; fi
done <"$tmp/ids"
finish
