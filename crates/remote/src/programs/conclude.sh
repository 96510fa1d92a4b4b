# shellcheck shell=bash
# Collects exit records, logs and status files of jobs that have ended, then removes their files with secrets.
#
# stdin: a line "number of jobs, bytes of a tail, of a status file, of all status files, of all parts of results, of all lines of a job that
# look like errors, of each log that is searched for them"; for each job a line
# "index, id, state directory, results directory, most unread bytes of a status file, directory of component logs, known status files,
# candidates for out, for err, files to remove, parts of results, 1 for a task without nodes, 1 to search for errors", a line "index, inode, offset, path" for
# each known status file, and one for each other path and part.

# Any part of a pipe that writes a list may run out of room.
set -o pipefail

IFS=$'\t' read -r count tail_bytes per_file altogether all_parts error_bytes error_read || give_up 'the list of jobs did not arrive whole'
begun=$SECONDS
mkdir -- "$tmp/tails" || lost
: >"$tmp/dirs" || lost
: >"$tmp/want" || lost
: >"$tmp/known" || lost
: >"$tmp/unread" || lost

# Reads the files of one job, in a process of its own, because a file system may hang. $1: where to keep the ends of the logs, $2: the
# most bytes of each, $3: id, $4: state directory, $5: directory of component logs, $6: how many of the rest may be standard output; the
# others may be standard error. Returns 0 only if all was read.
# shellcheck disable=SC2016
collect_logs='
  kept=$1 bytes=$2 id=$3 state=$4 roles=$5 outs=$6 code=0
  shift 6
  # Keeps the end of the first file that exists. $1: its stream, the rest: files.
  first_tail() {
    local stream=$1 path
    shift
    for path; do
      if [ -f "$path" ]; then
        timeout -k 1 4 tail -c "$bytes" -- "$path" >"$kept.$stream" || code=1
        return
      fi
    done
  }
  # It was made before the submission: without it the file system is not there. A task that never began has none.
  case $state in */tasks/*) if [ -d "${state%/tasks/*}" ]; then mkdir -p -- "$state"; fi ;; esac
  if [ ! -d "$state" ]; then code=1; fi
  # First of all: a run that starts after this stops. A link needs no room on a full disk.
  if [ "$id" != - ]; then ln -sfT -- "$id" "$state/over" || code=1; fi
  first_tail out "${@:1:outs}"
  first_tail err "${@:outs+1}"
  # The ends of the logs of its components, of at most 32 tasks.
  if [ "$roles" != - ]; then
    # A pattern of the shell would hold the names of any number of files.
    find "$roles" -mindepth 2 -maxdepth 2 -type f -regextype posix-extended -regex ".*/[0-9]{1,6}\.(out|err)" 2>/dev/null | sort | head -n 64 | while IFS= read -r log; do
      tail -c 4096 -- "$log"
      echo
    done | tail -c 131072 >"$kept.roles" || code=1
  fi
  # Its exit record names the component that ended it. The job can write to that, too.
  ended=
  if [ "$roles" != - ] && [ -f "$state/exit" ]; then
    # Ends at a NUL, as in every reader of markers.
    IFS= read -r -d "" -n 800 why <"$state/exit"
    newline=$(printf "\nx") newline=${newline%x}
    why=${why#*"$newline"}
    why=${why%%"$newline"*}
    kind=${why%% *} name=${why#* }
    name=${name%% *}
    case $kind:$name in
      *:*[!a-zA-Z0-9_-]* | *:) ;;
      step:* | service:*)
        ended=.$name.
        printf "%s" "$why" >"$kept.why" || code=1
        for stream in out err; do
          log=$roles/$name/0.$stream
          if [ -f "$log" ]; then tail -c 4096 -- "$log" >"$kept.its_$stream" || code=1; fi
        done
        ;;
    esac
  fi
  # Has that one begun on a node, or any if it is not known?
  set -- "$state/begun$ended"*
  if [ -e "$1" ]; then : >"$kept.begun" || code=1; fi
  exit "$code"'

# Marks a job as unread. $1: its index.
unread() { printf '%s\n' "$1" >>"$tmp/unread" || lost; }

# The state directories may have disappeared while the rest was read.
check_states() {
  # shellcheck disable=SC2016
  timeout -k 1 5 bash -c '
    while IFS=$(printf "\t") read -r index dir; do
      if [ -d "$dir" ]; then printf "%s\n" "$index" || exit 74; fi
    done' <"$tmp/dirs" >"$tmp/there" 2>/dev/null
  if (($? == 74)); then lost; fi
  awk -F'\t' 'pass == 1 { there[$1]; next } !($1 in there) { print $1 }' pass=1 "$tmp/there" pass=2 "$tmp/dirs" \
    >>"$tmp/unread" || lost
}

# Whether a task has no state directory ($1): its first process creates it. One search for each attempt.
declare -A begun_in=()
has_never_begun() {
  local attempt=${1%/tasks/*}
  if [ -z "${begun_in[$attempt]-}" ]; then
    begun_in[$attempt]=" $(timeout -k 1 5 find "$attempt" -mindepth 2 -maxdepth 2 -path '*/tasks/*' -printf '%f ' 2>/dev/null)" \
      || begun_in[$attempt]=failed
  fi
  [[ ${begun_in[$attempt]} != failed && ${begun_in[$attempt]} != *" ${1##*/} "* ]]
}

# A few at a time, so that files that hang delay other jobs less. Waits for the oldest first.
window=16
started=0 ended=0
readers=() read_for=() removals=()
await_oldest() {
  local place=$((ended++ % window))
  wait "${readers[place]}" || unread "${read_for[place]}"
}

for ((job = 0; job < count; job++)); do
  IFS=$'\t' read -r index id state results backlog roles knowns outs errs removes parts bare may_have_failed || give_up 'the list of jobs did not arrive whole'
  if ((bare)) && ! has_never_begun "$state"; then bare=0; fi
  if ((!bare)); then
    printf '%s\t%s\n' "$index" "$state" >>"$tmp/dirs" || lost
    printf '%s\t%s\t%s\t%s\n' "$index" "$results" "$state" "$backlog" >>"$tmp/want" || lost
  fi
  for ((i = 0; i < knowns; i++)); do
    IFS= read -r path
    printf '%s\n' "$path" >>"$tmp/known" || lost
  done
  logs=()
  for ((i = 0; i < outs + errs; i++)); do
    IFS= read -r path
    logs+=("$path")
  done
  removals[index]=$removes
  for ((i = 0; i < removes; i++)); do
    IFS= read -r path
    printf '%s\t%s\t%s\t%s\n' "$index" "$id" "$state" "$path" >>"$tmp/remove" || lost
  done
  if ((parts > 0)); then want_results "$index" "$results" "$parts" "$outs" ${logs[@]+"${logs[@]}"}; fi
  if ((bare)); then continue; fi
  if ((may_have_failed)); then want_errors "$index" "$roles" "$outs" ${logs[@]+"${logs[@]}"}; fi
  if ((started - ended == window)); then await_oldest; fi
  # The rest is for the next call: the markers and status files must be read too.
  if ((SECONDS - begun >= 30)); then
    unread "$index"
    continue
  fi
  timeout -k 1 15 bash -c "$collect_logs" collect_logs "$tmp/tails/$index" "$tail_bytes" "$id" "$state" "$roles" "$outs" \
    ${logs[@]+"${logs[@]}"} >/dev/null 2>&1 </dev/null &
  read_for[started % window]=$index
  readers[started++ % window]=$!
done
while ((ended < started)); do await_oldest; done
search_for_errors

say_markers "$tmp/dirs"
say_status_files "$tmp/want" "$tmp/known" "$per_file" "$altogether"
say_results "$all_parts"
check_states
declare -A got=()
names=()
while read -r name size; do got[$name]=$size; done < <(sizes "$tmp/tails")
for ((index = 0; index < count; index++)); do
  if [ -n "${got[$index.begun]-}" ]; then say "MARK $index begun"; fi
  sizes=
  for name in "$index".{out,err,roles,why,its_out,its_err,errors}; do sizes+=" ${got[$name]-0}"; done
  say "TAIL $index$sizes"
  for name in "$index".{out,err,roles,why,its_out,its_err,errors}; do
    if ((${got[$name]-0} > 0)); then names+=("$name"); fi
  done
done
say_bytes TAILS "$tmp/tails" ${names[@]+"${names[@]}"}
sort -n -u -- "$tmp/unread" | sed 's/^/UNREAD /' >"$tmp/said" || lost
say_file "$tmp/said"

# Removes the files with secrets, unless they belong to another Slurm job of the attempt or to a later attempt, or that is not
# known.
# shellcheck disable=SC2016
private_remover="is_superseded() ( $later_attempt )
remove() ( $remover )"'
  # Sets taken. $1: id of ours, "-" if it has none, $2: state directory.
  look() {
    local owner code
    taken=1
    is_superseded "$2"
    if (($? != 1)); then return; fi
    owner=$(readlink -- "$2/run")
    code=$?
    if ((code > 1)); then return; fi
    if ((code == 0)); then
      case $owner in
        "$1" | "" | 0* | *[!0-9]*) ;;
        *) return ;;
      esac
    fi
    taken=0
  }
  last=
  while IFS=$(printf "\t") read -r index id state path; do
    if [ "$index" != "$last" ]; then
      last=$index
      look "$id" "$state"
    fi
    if ((!taken)) && remove "$path" </dev/null; then tell "LINE $index"; fi
    tell THROUGH
  done'
if [ -f "$tmp/remove" ]; then
  # The rest is for the next call, before the caller gives up.
  walk_for "$((290 - SECONDS))" "$tmp/kept" "$private_remover" "$tmp/remove"
  while read -r index; do removals[index]=$((removals[index] - 1)); done <"$tmp/lines"
fi
# Reports the jobs with files that may still exist.
for index in "${!removals[@]}"; do
  if ((removals[index] > 0)); then say "KEPT $index"; fi
done
finish
