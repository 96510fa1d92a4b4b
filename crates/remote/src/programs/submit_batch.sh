# shellcheck shell=bash
# Submits jobs so that a repeated submission does no harm. Prints exactly one line for each entry.
#
# stdin: a line "length of the header, seconds in which entries begin, whether to sweep"; the header: a line for each column, which
# begins with its name: directories of all entries, and of some; the number of entries and the archive length of each wave; for
# each entry job name, state directory, script, fence, cleared fence, places of its directories ("-" for none, else "0 2"), base
# directory, results directory; for each file its entry, "size-mode", whether it is written in place, path; for each input
# its entry, its place, path. Then for each wave the archive of its files, and a line "whole".
#
# While the entries of one wave are submitted, those of the next are staged: submitting waits for the controller, staging for
# the file system.
#
# An attempt may be submitted several times, each time with a new submit fence, a number. A submission begins with the exclusive
# creation of the file submit.FENCE. If it finds a later fence, or an earlier one that is not cleared, it submits nothing: so a
# delayed submission has no effect. The fence comes before staging, so that a submission that never began leaves no file with
# secrets.

script=() answer=() wave_entries=() wave_bytes=()

# Answers an entry. $1: index, $2: the answer.
settle() {
  answer[$1]=$2
  say "$2"
}

# Answers an entry that was certainly not submitted. $1: index, $2: a file with the reason.
not_begun() { settle "$1" "STAGE_FAILED $1 $(encoded_tail "$2" 2000)"; }

# Answers the entries that need no sbatch, or must not get one.
settle_known() {
  local i id='' found
  local -a sent=()
  for ((i = 0; i < count; i++)); do
    if ((SECONDS >= patience)); then
      settle "$i" "SKIPPED $i"
    elif ((!cleared[i])) && [ ! -e "${state[i]}" ]; then
      # It has no files yet.
      continue
    elif kept_id "${state[i]}"; then
      settle "$i" "OK $i $id replay -"
    elif ((cleared[i])) || is_contested "$i" || is_taken "$i"; then
      sent+=("$i")
    fi
  done
  ask_queue ${sent[@]+"${sent[@]}"}
  for i in ${sent[@]+"${sent[@]}"}; do
    if is_contested "$i" || is_taken "$i"; then
      yield "$i"
    else
      adopt "$i"
      found=$?
      # Its fence is free, and the earlier ones are cleared.
      if ((found == 2)); then not_begun "$i" "$tmp/lookup.err"; fi
    fi
  done
}

# Reads the next line of $text_lines into an array, without the word that it begins with: the array's name. $1: that name, $2: how
# many fields there must be, if that is known.
take_line() {
  local -n into=$1
  # shellcheck disable=SC2206 # to be split: no field is empty and none holds what -f forbids to expand
  into=(${text_lines[taken++]-})
  [ "${into[0]-}" = "$1" ] || return 1
  into=("${into[@]:1}")
  [ "${2-${#into[@]}}" = "${#into[@]}" ]
}

# Reads the header. As one block, because bash reads a line from a pipe byte by byte.
read_entries() {
  local length text column taken=0 i IFS
  local -a text_lines
  read -r length patience sweep || return
  IFS= read -r -N "$length" text || return
  set -f
  IFS=$'\n'
  # shellcheck disable=SC2206
  text_lines=($text)
  IFS=$'\t'
  for column in shared_dirs dirs wave_entries wave_bytes name; do take_line "$column" || return; done
  count=${#name[@]}
  for column in state script send cleared dirs_of base results; do take_line "$column" "$count" || return; done
  take_line file_entry || return
  for column in file_look file_in_place file_path; do take_line "$column" "${#file_entry[@]}" || return; done
  take_line need_entry || return
  for column in need_place need; do take_line "$column" "${#need_entry[@]}" || return; done
  set +f
  for ((i = 0; i < count; i++)); do answer[i]='' broken[i]=''; done
}

# Answers an entry after all lanes have ended. $1: index, $2: the exit code of the lanes.
settle_submitted() {
  local id='' code=''
  # Created either by the lane that begins the entry, or here; then no lane begins it.
  set -C
  if [ ! -e "$tmp/out.$1" ] && : >"$tmp/out.$1"; then
    set +C
    settle "$1" "SKIPPED $1"
    skipped=1
    return
  fi
  set +C
  # Without an exit code of sbatch, the job may have been submitted.
  if [ ! -f "$tmp/code.$1" ] || ! read -r code <"$tmp/code.$1"; then code=$(($2 == 124 ? 124 : 137)); fi
  read -r id <"$tmp/out.$1" || id=
  id=${id%%;*}
  if [ "$code" = 0 ] && is_id "$id" || kept_id "${state[$1]}"; then
    settle "$1" "OK $1 $id new -"
  else
    settle "$1" "REFUSED $1 $code $(encoded_tail "$tmp/err.$1" 2000)"
  fi
}

# Whether it is too late to begin an entry: sbatch may take 150 s, and the caller must still be waiting then.
is_late() { ((SECONDS >= patience + 5)); }

# Takes the fence of an entry, or answers the entry. $1: index.
claim() {
  # Opened with O_EXCL: only one call succeeds.
  set -C
  if ! : >"${state[$1]}/submit.${send[$1]}"; then
    set +C
    if is_taken "$1"; then yield "$1"; else not_begun "$1" "$tmp/stage.err"; fi
    return
  fi
  set +C
  # Each call takes its fence before it looks for others: of two, at least one sees the other.
  if is_contested "$1"; then
    yield "$1"
  fi
}

# Takes the fences of the wave's entries without an answer.
claim_entries() {
  local i
  for ((i = begin; i < end; i++)); do
    if [ -n "${answer[i]}" ] || [ -n "${broken[i]}" ]; then continue; fi
    if is_late; then settle "$i" "SKIPPED $i"; else claim "$i"; fi
  done
}

# The caller may be gone. Entries with a fence are submitted anyway: the next call finds the saved id at once, while a fence
# without a result has to be waited for.
trap : PIPE
count=0 sweep=0
read_entries || give_up 'the entries did not arrive whole'
settle_known
# Opened once, because opening it for each file would take as long as writing the file.
exec 2>>"$tmp/stage.err"
# Also runs after a signal. Staged files that were not moved may be secret. A lane that is still running must lose its directory
# in one step, so it is renamed first.
left_behind=
take_away() {
  if [ -n "$left_behind" ]; then
    mv -T -- "$tmp" "$tmp.over"
    stages+=("$tmp.over")
  fi
  stages+=("$tmp")
  for_all stages rm -rf --
}
trap take_away EXIT
find_inputs answer

# sbatch mostly waits for the controller, so a few run at the same time, in lanes that share the entries. One time limit covers all
# lanes, because a limit for each sbatch would need another process for each. No sbatch begins so late that it could outlast
# the caller.
#
# $1: number of lanes, $2: seconds in which entries begin, $3: directory for output, the rest: index, state directory and script of
# each entry. Returns the code of a lane that failed.
# shellcheck disable=SC2016 # expanded by the bash that it is given to
lanes_program="$(declare -f is_id keep_id)"'
lanes=$1 left=$2 tmp=$3
shift 3
entries=("$@") processes=()
run_lane() {
  local at code id
  # The lane does not end before its sbatch: an sbatch that ignores this gets SIGKILL later, together with its lane.
  trap "exit 124" TERM
  # Exactly one of the lanes and the waiting parent creates the file that begins an entry.
  set -C
  for ((at = 3 * $1; at < ${#entries[@]} && SECONDS < left; at += 3 * lanes)); do
    set -- "${entries[@]:at:3}"
    sbatch --parsable "$3" >"$tmp/out.$1" 2>"$tmp/err.$1" </dev/null
    code=$? id=
    # With a cluster name: "6605;lab". Without its newline it may be incomplete.
    read -r id <"$tmp/out.$1" || id=
    id=${id%%;*}
    # The job exists even if its id cannot be saved: the next call would find it by name.
    if [ "$code" = 0 ] && is_id "$id"; then keep_id "$2" "$id"; fi
    printf "%s\n" "$code" >"$tmp/code.$1"
  done
}
# A login script may define a function of that name. The path is resolved once, because PATH may contain slow file systems.
unset -f sbatch
hash sbatch 2>/dev/null
# Only now: a signal before this point ends the process before anything has begun.
trap : TERM
for ((lane = 0; lane < lanes; lane++)); do
  run_lane "$lane" &
  processes+=("$!")
done
result=0
for process in "${processes[@]}"; do
  while wait "$process"; code=$?; ((code > 128)) && kill -0 "$process"; do :; done
  if ((code)); then result=$code; fi
done
exit "$result"'
# The jobs inherit the environment of sbatch.
give_environment() {
  local pair
  unset LC_ALL TZ SLURM_TIME_FORMAT
  for pair in ${site_env[@]+"${site_env[@]}"}; do export "${pair?}"; done
}

# For each wave: the process of its lanes, and its entries.
lanes_of=() ready_of=()

# Submits the staged entries of the wave. $1: number of lanes.
start_lanes() {
  local i left
  local -a ready=() words=()
  for ((i = begin; i < end; i++)); do
    if [ -n "${answer[i]}" ]; then
      continue
    elif [ -n "${broken[i]}" ]; then
      not_begun "$i" "$tmp/stage.err"
    else
      ready+=("$i")
      words+=("$i" "${state[i]}" "${script[i]}")
    fi
  done
  left=$((patience + 5 - SECONDS))
  if ((${#ready[@]} == 0)); then return; fi
  lanes_of+=(-) ready_of+=("${ready[*]}")
  if ((left <= 0)); then return; fi
  {
    give_environment
    exec timeout -k 5 $((left + 150)) bash --noprofile --norc -c "$lanes_program" lanes "$1" "$left" "$tmp" "${words[@]}"
  } </dev/null >/dev/null &
  lanes_of[-1]=$! left_behind=1
}

# Waits for all lanes and answers their entries.
end_lanes() {
  local i wave code skipped=
  for wave in "${!lanes_of[@]}"; do
    code=0
    if [ "${lanes_of[wave]}" != - ]; then wait "${lanes_of[wave]}" || code=$?; fi
    for i in ${ready_of[wave]}; do settle_submitted "$i" "$code"; done
  done
  # Lanes that have begun all their entries cannot begin another.
  left_behind=$skipped
}

begin=0 end=0
for wave in "${!wave_entries[@]}"; do
  begin=$end end=$((begin + wave_entries[wave]))
  make_dirs
  claim_entries
  if ! stage_files answer "${wave_bytes[wave]}"; then
    # Some earlier entries may be in Slurm already.
    if ((begin == 0)); then give_up 'the files did not arrive whole'; fi
    echo 'the files did not arrive whole' >&2
    for ((index = begin; index < end; index++)); do broken[index]=1; done
  fi
  # A wave does not wait for the one before it, where an sbatch may hang.
  start_lanes "$((end < count ? 2 : 4))"
done
# While sbatch runs, this delays no one.
if ((sweep)); then remove_abandoned visited; fi
end_lanes
finish
