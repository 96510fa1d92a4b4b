
# Waits until a program has ended, and sets $_tao_code to its exit code. $1: its process id.
_tao_wait() {
  local before=
  while :; do
    _tao_seen=0
    wait "$1"
    _tao_code=$?
    # A signal interrupted the wait after the exit code was collected.
    if ((_tao_code == 127)) && [ -n "$before" ]; then _tao_code=$before; fi
    if ((!_tao_seen)); then return; fi
    before=$_tao_code
  done
}
# srun returns the highest code of its tasks, which may be that of tasks it killed after the first failure. The first task that
# failed has written its code to a file. $1: the file.
_tao_first_code() {
  local code=
  if ((_tao_code == 0)) || [ ! -f "$1" ]; then return; fi
  IFS= read -r code <"$1"
  case $code in
  [1-9] | [1-9][0-9] | [12][0-9][0-9]) _tao_code=$code ;;
  esac
}
# Checks an end with code 0, and writes the exit record only if it is genuine. The record is written before scontrol is asked,
# because a controller that does not answer may have lost the job, and would kill this script on its return.
_tao_check_success() {
  # No program runs any more, only the writers of the marker, which must survive signals.
  trap '' HUP INT TERM
  if _tao_node_has_failed; then
    _tao_broken_off=1
    exit 118
  fi
  if _tao_mark exit 0 "$(_tao_now)"; then _tao_marked=1; fi
  # A signal may interrupt scontrol, which is then repeated.
  trap _tao_ended=1 HUP INT TERM
  if _tao_is_put_back || { ((_tao_ended)) && _tao_is_put_back; }; then
    _tao_broken_off=1
    rm -f -- "$_tao_state/exit"
  fi
}
# srun returns 0 when the node of a step fails (_node_fail_handler of its source); only its log shows the failure. Searches the
# last MiB, by an offset from the start, because Slurm may append meanwhile.
_tao_node_has_failed() {
  local from
  from=$(stat -c %s -- "$_tao_state/main.err" 2>/dev/null)
  ((from -= 1048576, from = from > _tao_log_before ? from : _tao_log_before))
  tail -c "+$((from + 1))" -- "$_tao_state/main.err" 2>/dev/null | grep -aqF 'srun: error: Node failure on '
}
# Prints scontrol's line about this job. A controller that has lost its state gives ids again, so the name must match too. $1: the
# most seconds.
_tao_show() {
  local told
  told=$(timeout "$1" scontrol -o show job "$_tao_id" 2>/dev/null </dev/null)
  case $told in
  "JobId=$_tao_id JobName=$_tao_name "*) printf '%s\n' "$told" ;;
  *) return 1 ;;
  esac
}
# Asks the programs to end. srun would kill its step on SIGTERM; with scancel the programs can save their work. The check avoids
# another job, if a controller that has lost its state has given the id again; scancel would have to list all jobs to compare a
# name.
_tao_ask_to_end() {
  if _tao_show 30 >/dev/null; then timeout 30 scancel --signal=TERM "$_tao_id" >&2 </dev/null; fi
}
# Whether Slurm will run this job again whatever it returns: the job was requeued, or preempted (PreemptMode=REQUEUE with a
# GraceTime). While the script runs, COMPLETING means that the job was requeued or canceled; PENDING means that the controller
# was killed and has lost the start. A job that was suspended by preemption keeps its PreemptTime; after the resumption its
# SuspendTime is the time of the resumption (_job_suspend_op of slurmctld's source).
_tao_is_put_back() {
  local told preempted suspended
  told=$(_tao_show 10)
  case $told in
  *' Requeue=0 '*) return 1 ;;
  *' JobState=COMPLETING '* | *' JobState=REQUEUE'* | *' JobState=SPECIAL_EXIT '* | *' JobState=PREEMPTED '*) return 0 ;;
  *' PreemptTime=None '*) return 1 ;;
  *' PreemptTime='*' SuspendTime='*) ;;
  *) return 1 ;;
  esac
  preempted=${told##* PreemptTime=} suspended=${told##* SuspendTime=}
  preempted=${preempted%% *} suspended=${suspended%% *}
  [[ $suspended == None || $preempted > $suspended ]]
}
