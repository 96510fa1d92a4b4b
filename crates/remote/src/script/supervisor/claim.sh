
# The supervisor: the same text for every job.

readonly _tao_id=${SLURM_JOB_ID:?} _tao_restart=${SLURM_RESTART_COUNT:-0}
_tao_stop_here() {
  echo "tao-slurm: job $_tao_id stops here: $2" >&2
  exit "$1"
}
# The submission left its fence here. Without one the job was deleted with its files, and Slurm 23 or later created the
# directory for the logs.
_tao_is_staged() {
  local claim
  for claim in "$_tao_state"/submit.*; do
    if [ -f "$claim" ]; then return 0; fi
  done
  return 1
}
_tao_is_staged || _tao_stop_here 120 'its files are gone'

# An attempt belongs to one Slurm job. The symbolic link is created atomically and names its owner. After a requeue the owner is
# this same job. An attempt that was given up before it reached Slurm has the owner "no-owner".
if ! ln -sT -- "$_tao_id" "$_tao_state/run" 2>/dev/null; then
  _tao_owner=$(readlink -- "$_tao_state/run")
  if [ "$_tao_owner" != "$_tao_id" ]; then
    _tao_stop_here 120 "the attempt belongs to job ${_tao_owner:-(its claim cannot be made)}"
  fi
fi
# A controller that has lost its last seconds starts ended jobs again. If the service has read the exit record of this one, it
# has acted on it.
if [ "$(readlink -- "$_tao_state/over")" = "$_tao_id" ]; then
  _tao_stop_here 120 'its end is already recorded'
fi
# Such a controller also starts a run again under the same count: each run is executed once. A run with an exit record returns
# its code again.
_tao_is_this_run() { _tao_reads "$1" && [ "$_tao_run" = "$_tao_restart" ]; }
# Reads a marker of this job. $1: its name. Sets the run that wrote it, and the first word of the rest.
_tao_reads() {
  local id=''
  [ -f "$_tao_state/$1" ] || return 1
  # Ends at a NUL: bash would skip NULs without counting them, endlessly in a sparse file.
  read -r -d '' -n 400 id _tao_run _tao_word _ <"$_tao_state/$1"
  [ "$id" = "$_tao_id" ]
}
if _tao_is_this_run started; then
  _tao_code=123
  # 143: the run was ended from outside, by a controller that had lost it or by a cancellation. That is not the result of this
  # start.
  if _tao_is_this_run exit; then case $_tao_word in '' | *[!0-9]* | 143) ;; *) _tao_code=$_tao_word ;; esac fi
  _tao_stop_here "$_tao_code" 'Slurm has started this run of it before'
fi
# Such a controller also requeues a job that has ended with code 0: its work is not repeated. A new run removes this marker.
if _tao_reads exit && [ "$_tao_word" = 0 ]; then _tao_stop_here 0 "run $_tao_run of it has ended with code 0"; fi

# Slurm before 23 creates no directories for logs, so it writes them to the state directory, which exists.
mkdir -p -- "$_tao_logs"
for _tao_stream in main.out main.err; do
  if [ ! -e "$_tao_logs/$_tao_stream" ]; then
    ln -- "$_tao_state/$_tao_stream" "$_tao_logs/$_tao_stream" 2>/dev/null \
      || ln -s -- "$_tao_state/$_tao_stream" "$_tao_logs/$_tao_stream"
  fi
done
