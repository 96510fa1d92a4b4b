# shellcheck shell=bash
# Removes everything that jobs have left behind.
#
# stdin: a line "number of jobs"; for each job a line "index, base directory, UUID".

read -r count || give_up 'the list of jobs did not arrive whole'
cat >"$tmp/jobs"
if [ "$(wc -l <"$tmp/jobs")" != "$count" ]; then give_up 'the list of jobs did not arrive whole'; fi

uuid='^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'

# Whether the results directory of job $1 was made for it by the service: it has been put into place with a mark inside.
# A caller may choose a job's UUID, so that the name alone says nothing.
made_here() {
  local mark=results/$1/.tao-slurm
  # The job can write to it: who knows how long it is by now.
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

# What is to go first gets a name that nobody else uses: half removed, it would be known by nothing.
doomed=.tao-slurm-purge.
doom() { timeout -k 5 20 mv -n -T -- "$1" "${1%/*}/$doomed${1##*/}" </dev/null; }

# Removes what is of job $2 below $1, and prints what bears its id and is not ours on descriptor 3. rm does not follow
# links, and stays on the file system it begins on.
purge() {
  local base=$1 id=$2 logs
  [[ $id =~ $uuid ]] || { echo 'not a job id'; return 1; }
  # A directory that is not there may be a file system that is not there.
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
  timeout -k 5 60 rm -rf --one-file-system -- "results/$doomed$id" "slurm-logs/${doomed}tao-job-$id-"* "state/$id" \
    "specs/$id.json" "env/$id.json" "env/$id.sh" "meta/$id.json" "sbatch/job_$id.sbatch" </dev/null || return 1
  # Something was in the way of its new name.
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
