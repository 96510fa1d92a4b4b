
# A task of an array has a state directory of its own.
_tao_no_task() { # $1: the reason, $2: the code
  echo "tao-slurm: task $TAO_TASK stops here: $1" >&2
  exit "${2-121}"
}
# The attempt belongs to one array; its first task claims it. "no-owner": it was given up before it reached Slurm.
if ! ln -sT -- "${SLURM_ARRAY_JOB_ID:?}" "$_tao_attempt/run" 2>/dev/null; then
  _tao_owner=$(readlink -- "$_tao_attempt/run")
  if [ "$_tao_owner" != "$SLURM_ARRAY_JOB_ID" ]; then
    _tao_no_task "the attempt belongs to job ${_tao_owner:-(its claim cannot be made)}" 120
  fi
fi
mkdir -- "$_tao_state" 2>/dev/null
for _tao_stream in out err; do
  # Slurm has opened these.
  if [ ! -e "$_tao_state/main.$_tao_stream" ]; then
    ln -- "$_tao_attempt/$SLURM_ARRAY_TASK_ID.$_tao_stream" "$_tao_state/main.$_tao_stream" 2>/dev/null \
      || ln -s -- "$_tao_attempt/$SLURM_ARRAY_TASK_ID.$_tao_stream" "$_tao_state/main.$_tao_stream"
  fi
done
