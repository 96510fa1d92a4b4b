# shellcheck shell=bash
# Removes everything that jobs have left behind.
#
# stdin: a line "number of jobs"; for each job a line "index, base directory, UUID".

read -r count || give_up 'the list of jobs did not arrive whole'
cat >"$tmp/jobs"
if [ "$(wc -l <"$tmp/jobs")" != "$count" ]; then give_up 'the list of jobs did not arrive whole'; fi

uuid='^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'

# Removes what is of job $2 below $1. The names hold the whole UUID, so nobody else's file can have them; rm does not
# follow links, and stays on the file system it begins on.
purge() {
  local base=$1 id=$2
  [[ $id =~ $uuid ]] || { echo 'not a job id'; return 1; }
  # A directory that is not there may be a file system that is not there.
  cd -- "$base" || return 1
  [ "$PWD" != / ] || { echo 'the base directory is the root'; return 1; }
  timeout -k 5 60 rm -rf --one-file-system -- "results/$id" "state/$id" "specs/$id.json" "env/$id.json" "env/$id.sh" \
    "meta/$id.json" "sbatch/job_$id.sbatch" "slurm-logs/tao-job-$id-"* </dev/null
}

while IFS=$'\t' read -r index base id; do
  if ((SECONDS >= 90)); then
    say "LEFT $index $(printf 'not begun in time' | base64 -w0)"
  elif (purge "$base" "$id") >"$tmp/err" 2>&1; then
    say "GONE $index"
  else
    say "LEFT $index $(encoded_tail "$tmp/err" 400)"
  fi
done <"$tmp/jobs"
finish
