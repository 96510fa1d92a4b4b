
# Requeues the job after its own time limit. Returns only if that fails.
_tao_requeue() {
  local before=0 why='Slurm did not requeue the job'
  # Whoever ends the job from now on does not want it to go on.
  trap 'exit 143' HUP INT TERM
  if ((_tao_ended)); then exit "$_tao_ended"; fi
  if _tao_reads requeued && [[ $_tao_word =~ ^[0-9]+$ ]]; then before=$_tao_word; fi
  if ((before >= _tao_max_requeues)); then
    why="the job has requeued itself $before times, which is the most it may"
  elif ! _tao_show 60 >/dev/null; then
    why='Slurm has not shown the job by its id and its name'
  else
    # Counted first, because Slurm may end this script at any moment after the requeue, with a signal.
    _tao_no_record=1
    _tao_mark requeued "$((before + 1))" "$(_tao_now)"
    echo "tao-slurm: the job goes back into the queue, for time $((before + 1)) of at most $_tao_max_requeues" >&2
    if timeout 60 scontrol requeue "$_tao_self" >&2 </dev/null; then read -r -t 300 -u "$_tao_never"; fi
    _tao_no_record=0
    _tao_mark requeued "$before" "$(_tao_now)"
  fi
  echo "tao-slurm: $why; it ends with code 124" >&2
}
