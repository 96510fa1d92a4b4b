# shellcheck shell=bash
# What other sends of an attempt have done, or may still do: they are seen by the files that they claim it with, by the id that one
# of them kept, by the claim of the job itself, and in the queue by its name. What is found is said with settle, which the caller
# defines.
#
# Filled in by the caller: of each entry its job name, its state directory, which send this is, and up to which all are known to be
# over.
name=() state=() send=() cleared=()
# What the queue says of an entry, once it was asked.
queued=()

# Whether a text is a job id, of 32 bits.
is_id() {
  case $1 in '' | 0* | *[!0-9]*) return 1 ;; esac
  ((${#1} <= 10 && $1 <= 4294967295))
}

# Keeps an id where the next call will find it. It counts only with its newline, so a part of it is none.
# $1: state directory, $2: id.
keep_id() { printf '%s\n' "$2" >|"$1/slurm_id"; }

# Sets id to the id that was kept. The job can write there, too: a NUL ends it, else bash would pass over those of a sparse
# file for as long as there are any. $1: state directory.
kept_id() {
  local text=
  id=
  [ -f "$1/slurm_id" ] || return 1
  IFS= read -r -d '' -n 400 text <"$1/slurm_id"
  id=${text%%$'\n'*}
  [ "$id" != "$text" ] && is_id "$id"
}

# Asks the queue for entries, once for all of them: on a busy cluster each question takes as long as sbatch. Sets queued[index] to
# lines "STATE|ID", or to "?" where there is no answer. $@: indices.
ask_queue() {
  local i names='' status job of code
  local -A rows=()
  if (($# == 0)); then return; fi
  for i; do queued[i]='?' names+=",${name[i]}"; done
  # With -a, for a partition that is hidden hides our own jobs too. What of a federation runs elsewhere is none of them.
  keep_for 8 squeue --me -a -h -t all -n "${names#,}" -o '%T|%A|%j' >"$tmp/lookup" 2>"$tmp/lookup.err" </dev/null
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

# Looks for what an earlier call may have done, and answers if it finds it. $1: index. Returns 0 if it has answered, 1
# if there is surely nothing, 2 if that is not known.
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
  # While the claim cannot be seen, any that runs may be the one that has it.
  if [ -z "$claim" ]; then found=$waiting; fi
  rest=$(printf '%s\n' "$found" | grep -v -x -F -e "$id" -e '' | head -n 100 | paste -s -d , -)
  # If its id cannot be kept, the next call will find it in the same way.
  { mkdir -p -- "$dir" && keep_id "$dir" "$id"; } 2>/dev/null
  settle "$1" "OK $1 $id adopted ${rest:--}"
}

# Whether other sends have claimed the entry: later ones, or earlier ones that may still have an effect. $1: index.
is_contested() {
  local claim number
  for claim in "${state[$1]}"/submit.*; do
    number=${claim##*.}
    if is_id "$number" && ((number > cleared[$1] && number != send[$1])); then return 0; fi
  done
  return 1
}

# Whether somebody has claimed this very send. Who looks for a lost one claims it for nobody, with a link to nothing.
# $1: index.
is_taken() { [ -e "${state[$1]}/submit.${send[$1]}" ] || [ -L "${state[$1]}/submit.${send[$1]}" ]; }

# Answers an entry that is left to another send. $1: index.
yield() { adopt "$1" || settle "$1" "UNCERTAIN $1"; }
