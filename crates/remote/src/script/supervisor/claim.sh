
# The supervisor: the same text for every job.
# At once: a warning may come together with the job, because Slurm sends it up to a minute early, and it ends what has no trap.
_tao_seen=0 _tao_near=0
trap '_tao_seen=1 _tao_near=1' USR1
trap _tao_seen=1 USR2
# Markers name their writer by the id that sbatch returned: that of the array, for each of its tasks.
readonly _tao_id=${SLURM_JOB_ID:?} _tao_holder=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID} _tao_restart=${SLURM_RESTART_COUNT:-0}
# Slurm's commands take the last task for its whole array if they are given its id.
readonly _tao_self=${SLURM_ARRAY_TASK_ID:+${SLURM_ARRAY_JOB_ID}_}${SLURM_ARRAY_TASK_ID:-$_tao_id}
_tao_stop_here() {
  echo "tao-slurm: job $_tao_id stops here: $2" >&2
  exit "$1"
}
# Without the fence of its submission the job was deleted with its files, and Slurm 23 created the directory for the logs.
_tao_fence=$(find "${_tao_attempt:-$_tao_state}" -maxdepth 1 -name 'submit.*' -type f -print -quit 2>/dev/null)
[ -n "$_tao_fence" ] || _tao_stop_here 120 'its files are gone'
# An attempt belongs to one Slurm job, also after a requeue. The symbolic link is created atomically and names its owner: "no-owner"
# for an attempt that was given up before it reached Slurm.
if ! ln -sT -- "$_tao_holder" "$_tao_state/run" 2>/dev/null; then
  _tao_owner=$(readlink -- "$_tao_state/run")
  if [ "$_tao_owner" != "$_tao_holder" ]; then
    _tao_stop_here 120 "the attempt belongs to job ${_tao_owner:-(its claim cannot be made)}"
  fi
fi
# A controller that has lost its last seconds starts ended jobs again. The service has acted on the exit record of this one.
[ "$(readlink -- "$_tao_state/over")" != "$_tao_holder" ] || _tao_stop_here 120 'its end is already recorded'
# Reads a marker of this job. $1: its name. Sets the run that wrote it, and the first word of the rest.
_tao_reads() {
  local id=''
  [ -f "$_tao_state/$1" ] || return 1
  # Ends at a NUL: bash would skip NULs without counting them, endlessly in a sparse file.
  read -r -d '' -n 400 id _tao_run _tao_word _ <"$_tao_state/$1"
  [ "$id" = "$_tao_holder" ]
}
# Such a controller also starts a run again under the same count: each run is executed once, and then returns its code again.
if _tao_reads started && [ "$_tao_run" = "$_tao_restart" ]; then
  if ! _tao_reads exit || [ "$_tao_run" != "$_tao_restart" ]; then _tao_word=123; fi
  # 143: the run was ended from outside, which is not the result of this start.
  case $_tao_word in '' | *[!0-9]* | 143) _tao_word=123 ;; esac
  _tao_stop_here "$_tao_word" 'Slurm has started this run of it before'
fi
# Such a controller also requeues a job that has ended with code 0: its work is not repeated. A new run removes this marker.
if _tao_reads exit && [ "$_tao_word" = 0 ]; then _tao_stop_here 0 "run $_tao_run of it has ended with code 0"; fi
# Slurm before 23 creates no directories for logs, so it writes them to the state directory, which exists.
mkdir -p -- "$_tao_logs"
for _tao_log in main.out main.err; do
  if [ -e "$_tao_logs/$_tao_log" ] || ln -- "$_tao_state/$_tao_log" "$_tao_logs/$_tao_log" 2>/dev/null; then continue; fi
  ln -s -- "$_tao_state/$_tao_log" "$_tao_logs/$_tao_log"
done
