# shellcheck shell=bash
# Finds earlier submissions of an attempt: by their fence files, the saved id, the claim of the job, and the name in the queue.
# Answers with settle, which the caller defines.
#
# Set by the caller, for each entry: its job name, its state directory, its fence, and the last cleared fence.
name=() state=() send=() cleared=()
# The answer of squeue about an entry, if it was asked.
queued=()

# Whether a text is a job id, of 32 bits.
is_id() {
  case $1 in '' | 0* | *[!0-9]*) return 1 ;; esac
  ((${#1} <= 10 && $1 <= 4294967295))
}

# Saves an id for the next call. It counts only with its newline, so an incomplete id is ignored. A pipe that the job has
# put there would block the write.
# $1: state directory, $2: id.
keep_id() {
  if [ -L "$1/slurm_id" ] || { [ -e "$1/slurm_id" ] && [ ! -f "$1/slurm_id" ]; }; then rm -f -- "$1/slurm_id"; fi
  printf '%s\n' "$2" >|"$1/slurm_id"
}

# Sets id to the saved id. The job can write there too. Ends at a NUL, because bash would skip NULs endlessly in a sparse
# file. $1: state directory.
kept_id() {
  local text=
  id=
  [ -f "$1/slurm_id" ] || return 1
  IFS= read -r -d '' -n 400 text <"$1/slurm_id"
  id=${text%%$'\n'*}
  [ "$id" != "$text" ] && is_id "$id"
}

# Asks squeue once for all entries, because on a busy cluster each squeue takes as long as sbatch. Sets queued[index] to
# lines "STATE|ID", or to "?" where there is no answer. $@: indices.
ask_queue() {
  local i names='' status job of code
  local -A rows=()
  if (($# == 0)); then return; fi
  for i; do queued[i]='?' names+=",${name[i]}"; done
  # With -a, because a hidden partition hides our own jobs too. Jobs that run elsewhere in a federation do not count.
  keep_for 8 squeue --me -a -h -t all -n "${names#,}" -o '%T|%F|%j' >"$tmp/lookup" 2>"$tmp/lookup.err" </dev/null
  code=$?
  if ((code == 74)); then echo "${tmp%/*}: No space left on device" >"$tmp/lookup.err"; fi
  if ((code)); then
    if [ ! -s "$tmp/lookup.err" ]; then echo 'squeue gave no answer within 8 s.' >"$tmp/lookup.err"; fi
    return
  fi
  if complains "$tmp/lookup.err"; then return; fi
  while IFS='|' read -r status job of; do
    if [ -n "$of" ]; then rows[$of]+="$status|$job"$'\n'; fi
  done <"$tmp/lookup"
  for i; do queued[i]=${rows[${name[i]}]-}; done
}

# Looks for the job of an earlier call, and answers if it finds one. $1: index. Returns 0 if it has answered, 1 if there is
# certainly none, 2 if that is not known.
adopt() {
  local found id claim='' rest waiting dir=${state[$1]}
  if [ -z "${queued[$1]+x}" ]; then ask_queue "$1"; fi
  found=${queued[$1]}
  if [ "$found" = '?' ]; then return 2; fi
  if [ -L "$dir/run" ]; then claim=$(readlink -- "$dir/run" </dev/null); fi
  if ! is_id "$claim"; then claim=; fi
  if [ -z "$found$claim" ]; then return 1; fi
  waiting=$(printf '%s\n' "$found" | sed -n 's/^PENDING|//p' | tr -d ' ')
  found=$(printf '%s\n' "$found" | sed -e '/^REVOKED|/d' -e 's/^[^|]*|//' | tr -d ' ' | grep -E '^[1-9][0-9]*$' | sort -n -u)
  if [ -z "$found" ]; then
    if [ -z "$claim" ]; then return 1; fi
    found=$claim
  fi
  id=${found%%$'\n'*}
  if [ -n "$claim" ] && printf '%s\n' "$found" | grep -q -x -F -e "$claim"; then id=$claim; fi
  # Without a visible claim, any running job may hold it.
  if [ -z "$claim" ]; then found=$waiting; fi
  rest=$(printf '%s\n' "$found" | grep -v -x -F -e "$id" -e '' | head -n 100 | paste -s -d , -)
  # If its id cannot be saved, the next call finds it in the same way.
  { mkdir -p -- "$dir" && keep_id "$dir" "$id"; } 2>/dev/null
  settle "$1" "OK $1 $id adopted ${rest:--}"
}

# Whether another fence of the entry is taken: a later one, or an earlier one that is not cleared. $1: index.
is_contested() {
  local claim number
  for claim in "${state[$1]}"/submit.*; do
    number=${claim##*.}
    if is_id "$number" && ((number > cleared[$1] && number != send[$1])); then return 0; fi
  done
  return 1
}

# Whether this fence is taken. Locate takes the fence of an uncertain submission with a dangling link.
# $1: index.
is_taken() { [ -e "${state[$1]}/submit.${send[$1]}" ] || [ -L "${state[$1]}/submit.${send[$1]}" ]; }

# Answers an entry that belongs to another submission. $1: index.
yield() { adopt "$1" || settle "$1" "UNCERTAIN $1"; }
