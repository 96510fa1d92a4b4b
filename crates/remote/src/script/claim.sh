readonly _tao_id=${SLURM_JOB_ID:?} _tao_restart=${SLURM_RESTART_COUNT:-0}
# A job may set PATH for its own program; what this script calls is found as before.
readonly _tao_path=$PATH
_tao_srun=$(command -v srun || echo srun)
readonly _tao_srun

# Who submitted this has left its claim here. Slurm from 23 on makes a directory for the logs where there is none any more,
# because the job was deleted with its files.
_tao_is_staged() {
  local claim
  for claim in "$_tao_state"/submit.*; do
    if [ -f "$claim" ]; then return 0; fi
  done
  return 1
}
if ! _tao_is_staged; then
  echo "tao-slurm: job $_tao_id stops here: its files are gone" >&2
  exit 120
fi

# An attempt belongs to one job. Making a symbolic link either succeeds or does not, and the link says who made it, so
# there is no moment at which the claim has no owner. After a requeue the owner is this same job. Nobody owns an attempt that
# was given up before Slurm had it.
if ! ln -sT -- "$_tao_id" "$_tao_state/run" 2>/dev/null; then
  _tao_owner=$(readlink -- "$_tao_state/run")
  if [ "$_tao_owner" != "$_tao_id" ]; then
    echo "tao-slurm: job $_tao_id stops here: the attempt belongs to job ${_tao_owner:-(its claim cannot be made)}" >&2
    exit 120
  fi
fi
# A controller that has lost its memory of the last seconds starts jobs again that have ended. Whoever has read the last
# words of this one has acted upon them.
if [ "$(readlink -- "$_tao_state/over")" = "$_tao_id" ]; then
  echo "tao-slurm: job $_tao_id stops here: its end was told already" >&2
  exit 120
fi

# It also starts a run again that has begun, under the same count: each run is carried out once. One that has come to its end
# by itself ends as it did.
_tao_is_this_run() { _tao_reads "$1" && [ "$_tao_run" = "$_tao_restart" ]; }
# A mark of this job. $1: its name. Sets the run that left it, and the first word of the rest.
_tao_reads() {
  local id=''
  [ -f "$_tao_state/$1" ] && read -r id _tao_run _tao_word _ <"$_tao_state/$1" && [ "$id" = "$_tao_id" ]
}
if _tao_is_this_run started; then
  echo "tao-slurm: job $_tao_id stops here: Slurm has started this run of it before" >&2
  if _tao_is_this_run exit; then
    # 143: what was ended from outside was ended by a controller that had forgotten it, or as somebody wished. It is not Slurm's
    # word about this start.
    case $_tao_word in '' | *[!0-9]* | 143) ;; *) exit "$_tao_word" ;; esac
  fi
  exit 123
fi
# Or it puts one back into its queue that has ended well, and whose end it has forgotten: what is done is not done again. A
# run that begins removes this mark.
if _tao_reads exit && [ "$_tao_word" = 0 ]; then
  echo "tao-slurm: job $_tao_id stops here: run $_tao_run of it has ended with code 0" >&2
  exit 0
fi

# Slurm before 23 makes no directories for logs, so it writes them where they were sure to exist.
mkdir -p -- "$_tao_logs"
for _tao_stream in out err; do
  if [ ! -e "$_tao_logs/main.$_tao_stream" ]; then
    ln -- "$_tao_state/main.$_tao_stream" "$_tao_logs/main.$_tao_stream" 2>/dev/null \
      || ln -s -- "$_tao_state/main.$_tao_stream" "$_tao_logs/main.$_tao_stream"
  fi
done
