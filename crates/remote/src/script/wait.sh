
# Waits until a program has ended; its exit code is then in $_tao_code. $1: its process id.
_tao_wait() {
  local before=
  while :; do
    _tao_seen=0
    wait "$1"
    _tao_code=$?
    # Its end was told already, when a signal came between.
    if ((_tao_code == 127)) && [ -n "$before" ]; then _tao_code=$before; fi
    if ((!_tao_seen)); then return; fi
    before=$_tao_code
  done
}
# srun returns the highest code of its tasks, and that is the one of those it has killed because of the first. That one
# has left its code behind. $1: where.
_tao_first_code() {
  local code=
  if ((_tao_code == 0)) || [ ! -f "$1" ]; then return; fi
  IFS= read -r code <"$1"
  case $code in
  [1-9] | [1-9][0-9] | [12][0-9][0-9]) _tao_code=$code ;;
  esac
}
# Looks at an end with code 0: one that is none leaves no mark of an end. It is marked before Slurm is asked, because a controller
# that does not answer may have forgotten the job, and ends it as soon as it is back.
_tao_check_success() {
  local PATH=$_tao_path
  # Nothing runs any more that a signal could end, but for those who write the mark.
  trap '' HUP INT TERM
  if _tao_node_has_failed; then
    _tao_broken_off=1
    exit 118
  fi
  if _tao_mark exit 0 "$(_tao_now)"; then _tao_marked=1; fi
  # It may end the question, which then is asked again.
  trap _tao_ended=1 HUP INT TERM
  if _tao_is_put_back || { ((_tao_ended)) && _tao_is_put_back; }; then
    _tao_broken_off=1
    rm -f -- "$_tao_state/exit"
  fi
}
# srun returns 0 when the node of a step fails, as if its tasks there had ended well (_node_fail_handler of its source), and only
# its log tells. Whether it does, in the last MiB; counted from the start of the log, since Slurm may write more meanwhile.
_tao_node_has_failed() {
  local PATH=$_tao_path from
  from=$(stat -c %s -- "$_tao_state/main.err" 2>/dev/null)
  ((from -= 1048576, from = from > _tao_log_before ? from : _tao_log_before))
  tail -c "+$((from + 1))" -- "$_tao_state/main.err" 2>/dev/null | grep -aqF 'srun: error: Node failure on '
}
# Prints what Slurm tells of this job. A controller that has lost its state gives ids anew: by this one it may know another job,
# of another name. $1: how many seconds it may take.
_tao_show() {
  local PATH=$_tao_path told
  told=$(timeout "$1" scontrol -o show job "$_tao_id" 2>/dev/null </dev/null)
  case $told in
  "JobId=$_tao_id JobName=$_tao_name "*) printf '%s\n' "$told" ;;
  *) return 1 ;;
  esac
}
# Whether Slurm will run this job again whatever it returns: its program has asked for that, or has made room for another job
# (PreemptMode=REQUEUE with a GraceTime) and will go on. While the script runs, a job that completes is one that was put back, or is
# ended; PENDING is what a controller says that was killed and has forgotten the start. One that was suspended for another job keeps
# the time of that; the time of its suspension is that of its resumption by now (_job_suspend_op of slurmctld's source).
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
