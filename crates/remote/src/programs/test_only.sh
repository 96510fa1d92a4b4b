# shellcheck shell=bash
# Tests a script with sbatch --test-only, and whether paths exist. Submits nothing.
#
# stdin: a line "number of paths, bytes of the script"; each path on a line of its own; then the script.

# sbatch prints times for people.
unset SLURM_TIME_FORMAT

IFS=$'\t' read -r count length || give_up 'the question did not arrive whole'
: >"$tmp/paths"
for ((index = 0; index < count; index++)); do
  IFS= read -r path || give_up 'the question did not arrive whole'
  printf '%s\n' "$path" >>"$tmp/paths"
done
head -c "$length" >"$tmp/script"
if [ "$(stat -c %s -- "$tmp/script")" != "$length" ]; then give_up 'the question did not arrive whole'; fi

# A file system that hangs must not block the answer: a path that is not checked in time is in neither list.
# shellcheck disable=SC2016 # for the inner shell
timeout -k 1 10 bash -c '
  index=0
  while IFS= read -r path; do
    if [ -e "$path" ]; then echo "THERE $index"; else echo "MISSING $index"; fi
    index=$((index + 1))
  done' <"$tmp/paths" >"$tmp/there" 2>/dev/null &
if ((length > 0)); then
  timeout -k 2 15 sbatch --test-only "$tmp/script" >"$tmp/out" 2>"$tmp/err" </dev/null
  say "SBATCH $? $(encoded_tail "$tmp/err" 4000)"
fi
wait
say_file "$tmp/there"
finish
