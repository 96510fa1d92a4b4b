# shellcheck shell=bash
# Removes the files of deleted jobs.
#
# stdin: a line "number of jobs"; for each job a line "index, base directory, UUID".

read -r count || give_up 'the list of jobs did not arrive whole'
take_lines "$tmp/jobs" "$count" jobs

uuid='^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'

# Whether the service created the results directory of job $1: then it has a marker file inside. The name alone proves nothing,
# because a caller may choose a job's UUID.
made_here() {
  local mark=results/$1/.tao-slurm
  # The job can write to it, so its length is bounded.
  [ -d "results/$1" ] && [ ! -L "results/$1" ] && [ -f "$mark" ] \
    && [ "$(timeout -k 1 5 head -c 400 -- "$mark" 2>/dev/null </dev/null | tr -d '\0' | head -n 1)" = "$1" ]
}

# Whether a directory of logs belongs to an attempt of job $1: its log is the file that Slurm opened for the attempt.
# $2: directory.
logged_here() {
  local log
  for log in "state/$1"/*/main.out; do
    if [ "$2/main.out" -ef "$log" ]; then return 0; fi
  done
  return 1
}

# A directory is renamed before it is removed: half removed, it could not be recognized.
doomed=.tao-slurm-purge.
doom() { timeout -k 5 20 mv -n -T -- "$1" "${1%/*}/$doomed${1##*/}" </dev/null; }

# Prints the newest fence of an attempt if a submission up to it has not begun: it may still be on its way and must find a
# later fence. $1: state directory.
awaited() {
  local claim number newest=0 begun=0
  for claim in "$1"/submit.*; do
    number=${claim##*.}
    case $number in '' | 0* | *[!0-9]* | ??????????*) continue ;; esac
    if [ ! -L "$claim" ]; then begun=$((begun + 1)); fi
    if ((number > newest)); then newest=$number; fi
  done
  if ((begun < newest)); then echo "$newest"; fi
}

# Removes the state directories of job $1 but for the fences that stop late submissions: the newest of each attempt, as a
# dangling link.
purge_state() {
  local dir newest fenced=
  for dir in "state/$1"/*; do
    if [ ! -d "$dir" ] || [ -L "$dir" ]; then continue; fi
    newest=$(awaited "$dir")
    if [ -z "$newest" ]; then continue; fi
    fenced=1
    if [ ! -L "$dir/submit.$newest" ]; then
      ln -sfT no-owner "$dir/.no-owner" && mv -fT -- "$dir/.no-owner" "$dir/submit.$newest" || return 1
    fi
  done
  if [ -z "$fenced" ]; then
    rm -rf --one-file-system -- "state/$1"
  else
    find "state/$1" -xdev ! -type d ! '(' -type l -name 'submit.*' -lname no-owner ')' -delete \
      && find "state/$1" -depth -xdev -type d -empty -delete
  fi
}

# Removes the files of job $2 below $1, and prints files with its id that are not ours on descriptor 3. rm does not follow
# links and stays on its file system.
purge() {
  local base=$1 id=$2 logs
  [[ $id =~ $uuid ]] || { echo 'not a job id'; return 1; }
  # A missing directory may be an unmounted file system.
  cd -- "$base" || return 1
  [ "$PWD" != / ] || { echo 'the base directory is the root'; return 1; }
  if made_here "$id"; then
    doom "results/$id" || return 1
  elif [ -e "results/$id" ] || [ -L "results/$id" ]; then
    echo "results/$id" >&3
  fi
  for logs in "slurm-logs/tao-job-$id-"*; do
    if [ ! -e "$logs" ] && [ ! -L "$logs" ]; then continue; fi
    if logged_here "$id" "$logs"; then doom "$logs" || return 1; else echo "$logs" >&3; fi
  done
  # shellcheck disable=SC2016 # that bash expands it
  timeout -k 5 60 bash -c "$(declare -f awaited purge_state)"'; purge_state "$1"' purge_state "$id" </dev/null || return 1
  timeout -k 5 60 rm -rf --one-file-system -- "results/$doomed$id" "slurm-logs/${doomed}tao-job-$id-"* \
    "specs/$id.json" "env/$id.json" "env/$id.sh" "env/$id."*.sh "meta/$id.json" "sbatch/job_$id.sbatch" </dev/null || return 1
  # The rename was blocked.
  if made_here "$id"; then echo 'removed in part'; return 1; fi
}

while IFS=$'\t' read -r index base id; do
  : >"$tmp/others"
  if ((SECONDS >= 90)); then
    say "LEFT $index $(printf 'not begun in time' | base64 -w0)"
  elif (purge "$base" "$id") >"$tmp/err" 2>&1 3>"$tmp/others"; then
    if [ -s "$tmp/others" ]; then say "OTHERS $index $(encoded_tail "$tmp/others" 400)"; fi
    say "GONE $index"
  else
    say "LEFT $index $(encoded_tail "$tmp/err" 400)"
  fi
done <"$tmp/jobs"
finish
