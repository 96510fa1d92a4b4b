readonly _tao_id=${SLURM_JOB_ID:?} _tao_restart=${SLURM_RESTART_COUNT:-0}

# An attempt belongs to one job. Making a symbolic link either succeeds or does not, and the link says who made it, so
# there is no moment at which the claim has no owner. After a requeue the owner is this same job.
if ! ln -sT -- "$_tao_id" "$_tao_state/run" 2>/dev/null; then
  _tao_owner=$(readlink -- "$_tao_state/run")
  if [ "$_tao_owner" != "$_tao_id" ]; then
    echo "tao-slurm: job $_tao_id stops here: the attempt belongs to job ${_tao_owner:-(its claim cannot be made)}" >&2
    exit 120
  fi
fi

# Slurm before 23 makes no directories for logs, so it writes them where they were sure to exist.
mkdir -p -- "$_tao_logs"
for _tao_stream in out err; do
  if [ ! -e "$_tao_logs/main.$_tao_stream" ]; then
    ln -- "$_tao_state/main.$_tao_stream" "$_tao_logs/main.$_tao_stream" 2>/dev/null \
      || ln -s -- "$_tao_state/main.$_tao_stream" "$_tao_logs/main.$_tao_stream"
  fi
done

# Writes a mark in one step. $1: its name, the rest: what it says.
_tao_mark() {
  local name=$1
  shift
  echo "$_tao_id $_tao_restart $*" >"$_tao_state/.$name.$_tao_id" \
    && mv -f -- "$_tao_state/.$name.$_tao_id" "$_tao_state/$name"
}
_tao_finish() {
  local code=$?
  _tao_mark exit "$code" "$(date +%s)"
  exit "$code"
}
rm -f -- "$_tao_state/exit"
_tao_mark started "$(date +%s)" "${SLURMD_NODENAME:-$(hostname)}"
trap _tao_finish EXIT
# Without these a signal would end the script with the code of whatever came before it.
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
