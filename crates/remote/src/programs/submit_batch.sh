# shellcheck shell=bash
# Submits jobs so that doing it again does no harm. Prints exactly one line for each entry.
#
# stdin: a line "length of the lines behind it, seconds in which entries are begun, whether to look for what was abandoned"; lines that
# each begin with a word: directories of all entries, and of some; waves by their numbers of entries, and by the lengths of their
# archives; of the entries job names, state directories, scripts, sends, cleared sends, directories by their places in the list ("-"
# for none, else "0 2"), base directories, results directories or "-"; of the files, in the order of their entries, whose they are,
# "size-mode", whether they are written in their places, paths; of the inputs whose they are, their places among them, paths. Then
# for each wave the archive of its files, and a line "whole".
#
# While the entries of a wave are submitted, those of the next one are staged: the one waits for the controller, the other for the
# file system.
#
# An attempt may be sent several times; its sends are numbered. Each begins by making a file submit.NUMBER, which nobody
# else can make then. A send that finds a later one, or one before it of which its sender does not know that it is over,
# submits nothing: so one that was held up on its way, for however long, comes too late. It claims before it stages, so
# that nothing of it is there, no file with secrets either, if it has not begun.

script=() answer=() wave_entries=() wave_bytes=()

# Answers an entry. $1: index, $2: the answer.
settle() {
  answer[$1]=$2
  say "$2"
}

# Answers an entry of which surely nothing has been submitted. $1: index, $2: a file that says why.
not_begun() { settle "$1" "STAGE_FAILED $1 $(encoded_tail "$2" 2000)"; }

# Answers the entries that need no sbatch, or must not have one.
settle_known() {
  local i id='' found
  local -a sent=()
  for ((i = 0; i < count; i++)); do
    if ((SECONDS >= patience)); then
      settle "$i" "SKIPPED $i"
    elif ((!cleared[i])) && [ ! -e "${state[i]}" ]; then
      # Nothing of it is to be seen.
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
      # It has claimed nothing, and those before it are over.
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

# Reads what is asked, but for the bytes of the files. As one block: bash reads a line from a pipe byte by byte.
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

# Answers an entry when all lanes have ended. $1: index, $2: what the lanes returned.
settle_submitted() {
  local id='' code=''
  # Made by one of two: by a lane that begins with the entry, or here, and then no lane will.
  set -C
  if [ ! -e "$tmp/out.$1" ] && : >"$tmp/out.$1"; then
    set +C
    settle "$1" "SKIPPED $1"
    skipped=1
    return
  fi
  set +C
  # One whose end its lane did not see, or could not note, may have submitted, whatever sbatch has said until then.
  if [ ! -f "$tmp/code.$1" ] || ! read -r code <"$tmp/code.$1"; then code=$(($2 == 124 ? 124 : 137)); fi
  read -r id <"$tmp/out.$1" || id=
  id=${id%%;*}
  if [ "$code" = 0 ] && is_id "$id" || kept_id "${state[$1]}"; then
    settle "$1" "OK $1 $id new -"
  else
    settle "$1" "REFUSED $1 $code $(encoded_tail "$tmp/err.$1" 2000)"
  fi
}

# Whether it is too late to begin with an entry: sbatch may take 150 s, and whoever waits for us must still be there then.
is_late() { ((SECONDS >= patience + 5)); }

# Claims an entry, or answers it. $1: index.
claim() {
  # Opened with O_EXCL: of several who try, one succeeds.
  set -C
  if ! : >"${state[$1]}/submit.${send[$1]}"; then
    set +C
    if is_taken "$1"; then yield "$1"; else not_begun "$1" "$tmp/stage.err"; fi
    return
  fi
  set +C
  # Each claims before it looks for others: of two, one at least sees the other.
  if is_contested "$1"; then
    yield "$1"
  fi
}

# Claims the entries of the wave that are still wanted.
claim_entries() {
  local i
  for ((i = begin; i < end; i++)); do
    if [ -n "${answer[i]}" ] || [ -n "${broken[i]}" ]; then continue; fi
    if is_late; then settle "$i" "SKIPPED $i"; else claim "$i"; fi
  done
}

# Whoever asked may be gone. What was claimed is done all the same: its id is kept, and found at once, while a claim without
# an end has to be waited for.
trap : PIPE
count=0 sweep=0
read_entries || give_up 'the entries did not arrive whole'
settle_known
# Opened once, because opening it for every file would take as long as writing the file.
exec 2>>"$tmp/stage.err"
# bash comes here for a signal too. What was staged and not moved may be secret. A lane that is left behind must find nothing under
# the name that it knows, from one moment to the next.
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

# sbatch waits for the controller more than it works, so a few may run at the same time: in lanes, which take turns with
# the entries. All lanes together are bounded, for a process that bounds each sbatch would be one more to start for each. None
# begins so late that it could still be under way when nobody waits for us any more.
#
# $1: how many lanes, $2: seconds in which entries are begun, $3: directory for what is said, the rest: index, state directory and
# script of each entry. Returns what a lane returned that did not come to its end.
# shellcheck disable=SC2016 # expanded by the bash that it is given to
lanes_program="$(declare -f is_id keep_id)"'
lanes=$1 left=$2 tmp=$3
shift 3
entries=("$@") processes=()
run_lane() {
  local at code id
  # Does not go before its sbatch: one that is deaf to this gets a SIGKILL after it, together with its lane.
  trap "exit 124" TERM
  # Of the lanes and whoever waits for them, one makes the file with which an entry is begun.
  set -C
  for ((at = 3 * $1; at < ${#entries[@]} && SECONDS < left; at += 3 * lanes)); do
    set -- "${entries[@]:at:3}"
    sbatch --parsable "$3" >"$tmp/out.$1" 2>"$tmp/err.$1" </dev/null
    code=$? id=
    # With a cluster name: "6605;lab". Without its newline it may be a part of one.
    read -r id <"$tmp/out.$1" || id=
    id=${id%%;*}
    # The job is there even if its id cannot be kept: the answer counts, and the next call would find it by name.
    if [ "$code" = 0 ] && is_id "$id"; then keep_id "$2" "$id"; fi
    printf "%s\n" "$code" >"$tmp/code.$1"
  done
}
# A site may have a function of that name. It is looked for once: the way to it may lead through file systems that are slow.
unset -f sbatch
hash sbatch 2>/dev/null
# Not before: who is told to end meanwhile has begun nothing.
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

# Of each wave: the process of its lanes, and the entries that are in them.
lanes_of=() ready_of=()

# Submits what is staged of the wave. $1: in so many lanes.
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

# Waits until nothing is under way, and answers what was.
end_lanes() {
  local i wave code skipped=
  for wave in "${!lanes_of[@]}"; do
    code=0
    if [ "${lanes_of[wave]}" != - ]; then wait "${lanes_of[wave]}" || code=$?; fi
    for i in ${ready_of[wave]}; do settle_submitted "$i" "$code"; done
  done
  # Lanes that have taken up all their entries have none left to begin with.
  left_behind=$skipped
}

begin=0 end=0
for wave in "${!wave_entries[@]}"; do
  begin=$end end=$((begin + wave_entries[wave]))
  make_dirs
  claim_entries
  if ! stage_files answer "${wave_bytes[wave]}"; then
    # Of those before it some may be in Slurm by now.
    if ((begin == 0)); then give_up 'the files did not arrive whole'; fi
    echo 'the files did not arrive whole' >&2
    for ((index = begin; index < end; index++)); do broken[index]=1; done
  fi
  # A wave does not wait for the one before, where an sbatch may hang.
  start_lanes "$((end < count ? 2 : 4))"
done
# Nobody waits for this while sbatch does.
if ((sweep)); then remove_abandoned visited; fi
end_lanes
finish
