
# Requeues the job after its own time limit. Returns only if that fails. $1: the most requeues.
_tao_requeue() {
  local before=0
  if [ -f "$_tao_state/requeued" ]; then read -r _ _ before _ <"$_tao_state/requeued"; fi
  case $before in '' | *[!0-9]*) before=0 ;; esac
  if ((before >= $1)); then
    echo "tao-slurm: the job has requeued itself $before times, which is the most it may; it ends with code 124" >&2
    return
  fi
  if ! _tao_show 60 >/dev/null; then
    echo 'tao-slurm: Slurm has not shown the job by its id and its name; it ends with code 124' >&2
    return
  fi
  # Counted first, because Slurm may end this script at any moment after the requeue.
  _tao_requeued=1
  _tao_mark requeued "$((before + 1))" "$(_tao_now)"
  echo "tao-slurm: the job goes back into the queue, for time $((before + 1)) of at most $1" >&2
  if timeout 60 scontrol requeue "$_tao_id" >&2 </dev/null; then
    sleep 300 &
    wait $!
    if ((_tao_ended)); then exit "$_tao_ended"; fi
  fi
  echo 'tao-slurm: Slurm did not requeue the job; it ends with code 124' >&2
  _tao_requeued=0
  _tao_mark requeued "$before" "$(_tao_now)"
}
