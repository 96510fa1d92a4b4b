# shellcheck shell=bash
# Cancels jobs, by id and by name. What is unknown or has ended is cancelled already.
#
# stdin: a line "number of ids, number of names", then each on a line of its own.

IFS=$'\t' read -r ids names || give_up 'the list of ids did not arrive whole'

# Runs scancel, and prints how it failed if it did.
cancel() {
  local code=124
  : >"$tmp/err"
  if ((SECONDS < 60)); then
    timeout -k 5 30 scancel "$@" 2>"$tmp/err" >/dev/null </dev/null
    code=$?
  fi
  if [ "$code" != 0 ]; then say "REFUSED $code $(encoded_tail "$tmp/err" 60000)"; fi
}

while ((ids > 0)) && mapfile -t -n "$((ids < 500 ? ids : 500))" chunk && ((${#chunk[@]} > 0)); do
  ids=$((ids - ${#chunk[@]}))
  cancel "${chunk[@]}"
done
for ((i = 0; i < names; i++)); do
  IFS= read -r name || give_up 'the list of names did not arrive whole'
  cancel --me -n "$name"
done
if ((ids > 0)); then give_up 'the list of ids did not arrive whole'; fi
finish
