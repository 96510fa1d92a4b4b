
# Waits a moment ($1), and then does what is due. A trap may not do it: bash gives one up if the time of its `read` ends meanwhile.
_tao_pause() {
  local place begun signal=TERM
  read -r -t "$1" -u "$_tao_never"
  printf -v _tao_time '%(%s)T' -1
  if ((_tao_warning && _tao_time - _tao_began >= _tao_limit - _tao_warning)); then _tao_near=1; fi
  if ((_tao_near && !_tao_warned)); then
    _tao_warned=1
    echo 'tao-slurm: a time limit is near; the program gets SIGUSR1' >&2
    _tao_mark warned "$_tao_time"
  fi
  # What has succeeded or failed before stays so.
  if ((_tao_limit && !_tao_limited && _tao_left && _tao_time - _tao_began >= _tao_limit)) && [ -z "$_tao_cause" ]; then
    _tao_limited=1 _tao_cause=limit
    echo "tao-slurm: the job has reached its own time limit of $_tao_limit s; its program is terminated" >&2
    _tao_mark limited "$_tao_time"
    if [ -z "$_tao_asked" ]; then _tao_ask_to_end 0; fi
  fi
  for place in "${!_tao_programs[@]}"; do
    if ((_tao_warned && !_tao_told[place] && !_tao_serves[place])); then
      begun=("$_tao_state/begun.${_tao_names[place]}".*)
      # It waits until all tasks of a step have begun: during the setup of a container the signal would end its task. srun passes it on
      # to every process of its step, and to nothing else.
      if [ -e "${begun[0]}" ] && ((${#begun[@]} >= _tao_tasks[place])); then
        _tao_told[place]=1
        kill -USR1 "${_tao_programs[place]}" 2>/dev/null
      fi
    fi
    # When the patience with a program that was asked to end is over, srun ends it, and kills it after 15 s more.
    if [ "$_tao_asked" = "${_tao_serves[place]}" ] && ((_tao_time >= _tao_press_at)); then
      if ((_tao_time >= _tao_kill_from)); then signal=KILL; fi
      kill -s "$signal" "${_tao_programs[place]}" 2>/dev/null
    fi
  done
  if ((_tao_time >= _tao_press_at)); then _tao_press_at=$((_tao_time + 15)); fi
}
# Asks the running steps (0), their aids (1), proxies (2) or services (3) to end. srun would kill its step on SIGTERM; with scancel the programs
# can save their work, within a minute. Proxies and services have none to save, and some hang: they have eight seconds. The check avoids
# another job, if a controller that has lost its state has given the id again; scancel would have to list all jobs to compare a name.
_tao_ask_to_end() {
  local place some=() others=0 patience=60
  if [ "$_tao_asked" = "$1" ]; then return; fi
  if (($1 > 1)); then patience=8; fi
  _tao_asked=$1
  for place in "${!_tao_programs[@]}"; do
    if ((_tao_serves[place] != $1)); then others=1; else _tao_add_step "$place"; fi
  done
  if ((!others)); then some=("$_tao_self"); fi
  if ((${#_tao_programs[@]})); then _tao_terminate "${some[@]}"; fi
  _tao_press_at=$(($(_tao_now) + patience)) _tao_kill_from=$((_tao_press_at + 15))
}

# Adds to the list `some` what scancel calls the step of a component ($1), if one has begun.
_tao_add_step() {
  local step=
  if [ -f "$_tao_state/step.${_tao_names[$1]}" ]; then read -r -d '' -n 400 step _ <"$_tao_state/step.${_tao_names[$1]}"; fi
  if [[ $step =~ ^[0-9]+$ ]]; then some+=("$_tao_self.$step"); fi
}
# Sends SIGTERM to the tasks of these steps. Slurm itself ends the steps of a job that it cancels or requeues, and scancel would try for
# a minute.
_tao_terminate() {
  if (($#)) && [[ $(_tao_show 30) == *' JobState=RUNNING '* ]]; then timeout 30 scancel --signal=TERM "$@" >&2 </dev/null; fi
}

# The step that was added last may fail: those after it begin in any case, and the job ends with its code then.
_tao_tolerate() { _tao_tolerated[${#_tao_names[@]} - 1]=1; }
# Adds a component to the table. $1: its name, $2: `step`, `service`, `proxy` for one that needs the services before it, `aid` for a service
# of the next step alone; or `with` and `aid-with` for those that start with the component before them. $3: how many tasks it has, $4: its
# time limit in seconds, the rest: its command.
_tao_component() {
  _tao_names+=("$1") _tao_starts+=("$2") _tao_tasks+=("$3") _tao_limits+=("$4")
  case $2 in service) _tao_serves+=(3) ;; proxy) _tao_serves+=(2) ;; aid*) _tao_serves+=(1) ;; *) _tao_serves+=(0) ;; esac
  _tao_from+=("${#_tao_words[@]}") _tao_lengths+=("$(($# - 4))") _tao_words+=("${@:5}")
}
# So many ($2) hosts of the job, from number $1 on, joined by $3.
_tao_slice() {
  local IFS=$3
  printf '%s' "${_tao_hosts[*]:$1:$2}"
}
# Starts a component ($1) in the background, so that the script handles signals.
_tao_start() {
  _tao_begins[$1]=$(_tao_now) _tao_told[$1]=0
  "${_tao_words[@]:_tao_from[$1]:_tao_lengths[$1]}" </dev/null {_tao_never}<&- &
  _tao_programs[$1]=$!
  ((_tao_steps += !_tao_serves[$1]))
}
# Waits until a component ($1) has ended, and sets $_tao_end to its exit code. The process is dead before the `wait`: bash 5.2 loses one
# that ends in it together with a signal, and then waits for ever.
_tao_reap() {
  local before='' code=''
  while kill -0 "${_tao_programs[$1]}" 2>/dev/null; do _tao_pause 0.2; done
  while :; do
    _tao_seen=0
    wait "${_tao_programs[$1]}"
    _tao_end=$?
    # A signal interrupted the wait after the exit code was collected.
    if ((_tao_end == 127)) && [ -n "$before" ]; then _tao_end=$before; fi
    if ((!_tao_seen)); then break; fi
    before=$_tao_end
  done
  # srun returns the highest code, which may be that of tasks it killed after the first failure. The first task has written its own.
  if ((_tao_end)) && [ -f "$_tao_state/failed.${_tao_names[$1]}" ]; then
    read -r -d '' -n 400 code _ <"$_tao_state/failed.${_tao_names[$1]}"
    case $code in [1-9] | [1-9][0-9] | [12][0-9][0-9]) _tao_end=$code ;; esac
  fi
  _tao_end=${_tao_over[$1]:-$_tao_end}
  unset "_tao_programs[$1]"
  ((_tao_steps -= !_tao_serves[$1], _tao_left -= !_tao_serves[$1]))
  _tao_ends+=$'\n'"${_tao_names[$1]} $_tao_end ${_tao_begins[$1]} $(_tao_now)"
}
# Ends what still runs of the steps (0), their aids (1), the proxies (2) or the services (3).
_tao_end_all() {
  local place
  for place in "${!_tao_programs[@]}"; do
    if ((_tao_serves[place] == $1)); then
      _tao_ask_to_end "$1"
      _tao_reap "$place"
    fi
  done
}
# The job ends with a component ($1) and this code ($2). $3: what it has done.
_tao_fail() {
  local kind=step
  if [ -n "$_tao_cause" ]; then return; fi
  if ((_tao_serves[$1])); then kind=service; fi
  _tao_code=$2 _tao_cause="$kind ${_tao_names[$1]} $3"
  if ((${#_tao_names[@]} > 1)); then echo "tao-slurm: the $_tao_cause; the others are terminated" >&2; fi
}
# A component ($1) has ended: the job goes on, or ends with it.
_tao_take_end() {
  local end=$_tao_end
  # 143: Slurm or the job has ended the step.
  if ((end && end != 143 && !_tao_serves[$1] && _tao_watches)) && [ -z "$_tao_cause" ]; then
    _tao_find_cause
    # The step has failed before the signal came.
    if [ "$_tao_cause" = signal ]; then _tao_cause=''; elif [ -n "$_tao_cause" ]; then return; fi
  fi
  if ((_tao_serves[$1])); then
    if ((_tao_watches)) && _tao_start_again "$1"; then return; fi
    if ((!end)); then end=114; fi
  elif ((end && _tao_tolerated[$1])); then
    echo "tao-slurm: the step ${_tao_names[$1]} has ended with code $end; the job goes on" >&2
    ((_tao_late = _tao_late ? _tao_late : end))
    return
  fi
  if ((end)); then _tao_fail "$1" "$end" "has ended with code $end"; fi
}
# Ends a step ($1) that may fail and has reached its time limit, in the stages of a job that ends: scancel, srun, a kill. A step that has
# not begun has nothing to save.
_tao_press() {
  local some=() signal=KILL
  if ((!_tao_pressed[$1])); then _tao_over[$1]=115; _tao_add_step "$1"; _tao_terminate "${some[@]}"; fi
  if ((_tao_pressed[$1] < 2)); then signal=TERM; fi
  if ((!${#some[@]})); then kill -s "$signal" "${_tao_programs[$1]}" 2>/dev/null; fi
  printf -v _tao_time '%(%s)T' -1
  ((_tao_limits[$1] = _tao_time - _tao_begins[$1] + (_tao_pressed[$1]++ ? 15 : 60)))
}
# Looks at each program. Fails if the job ends: a step has failed, a service has ended, or a signal or limit has come.
_tao_look() {
  local place
  for place in "${!_tao_programs[@]}"; do
    if kill -0 "${_tao_programs[place]}" 2>/dev/null; then
      if ((!_tao_limits[place] || _tao_time - _tao_begins[place] < _tao_limits[place])); then continue; fi
      if ((!_tao_tolerated[place])); then
        _tao_fail "$place" 115 "has reached its time limit of ${_tao_limits[place]} s"
        break
      fi
      _tao_press "$place"
      continue
    fi
    _tao_reap "$place"
    _tao_take_end "$place"
    if [ -n "$_tao_cause" ]; then break; fi
  done
  if ((_tao_watches)); then _tao_watch; fi
  [ -z "$_tao_cause" ]
}
# Waits until all steps have ended.
_tao_await_steps() {
  while ((_tao_steps)) && _tao_look && ((_tao_steps)); do _tao_pause 0.2; done
  [ -z "$_tao_cause" ]
}

# Whether srun has said that a node failed, or that it could not start a task: it returns 0 then (_node_fail_handler and
# _launch_handler of its source). Searches the last MiB of the log, by an offset from the start, because Slurm may append meanwhile.
_tao_node_has_failed() {
  local from
  from=$(stat -c %s -- "$_tao_state/main.err" 2>/dev/null)
  ((from -= 1048576, from = from > _tao_log_before ? from : _tao_log_before))
  tail -c "+$((from + 1))" -- "$_tao_state/main.err" 2>/dev/null \
    | grep -aqE 'srun: error: (Node failure on |task [0-9]+ launch failed: )'
}
# Prints scontrol's line about this job. A controller that has lost its state gives ids again, so the name must match too. $1: the
# most seconds.
_tao_show() {
  local told
  told=$(timeout "$1" scontrol -o show job "$_tao_self" 2>/dev/null </dev/null)
  [[ $told =~ ^JobId=$_tao_id\ (Array[A-Za-z]+=[0-9]+\ )*JobName=$_tao_name\  ]] && printf '%s\n' "$told"
}
# Whether Slurm will run this job again whatever it returns: it was requeued, or preempted (PreemptMode=REQUEUE with a GraceTime).
# While the script runs, COMPLETING means that the job was requeued or canceled; PENDING means that the controller was killed and
# has lost the start. A job that was suspended by preemption keeps its PreemptTime; after the resumption its SuspendTime is the time
# of the resumption (_job_suspend_op of slurmctld's source).
_tao_is_put_back() {
  local told
  told=$(_tao_show 10)
  if [[ -z $told || $told == *' Requeue=0 '* ]]; then return 1; fi
  if [[ $told =~ \ JobState=(COMPLETING|REQUEUE|SPECIAL_EXIT\ |PREEMPTED\ ) ]]; then return; fi
  [[ $told =~ \ PreemptTime=([^\ ]+)\ .*\ ?SuspendTime=([^\ ]+) && ${BASH_REMATCH[1]} != None ]] \
    && [[ ${BASH_REMATCH[2]} == None || ${BASH_REMATCH[1]} > ${BASH_REMATCH[2]} ]]
}
# All steps have ended with code 0, and others still run. A controller that has lost the job may kill this script before they have
# ended, so the record is written first. Signals must not end its writers.
_tao_steps_succeed() {
  (trap '' HUP INT TERM; ((_tao_left || _tao_late)) || _tao_node_has_failed || _tao_mark_exit 0)
  if _tao_is_put_back; then rm -f -- "$_tao_state/exit"; fi
}
# An end with code 0. The record is written before scontrol is asked, because a controller that does not answer may have lost the
# job, and would kill this script on its return.
_tao_succeed() {
  # No program runs any more, only the writers of the marker, which must survive signals.
  trap '' HUP INT TERM
  _tao_no_record=1
  # bash 5.2 gives up a function if a signal comes while it reads a `$()`, and so may have left out steps.
  if ((_tao_left)) || _tao_node_has_failed; then exit 118; fi
  _tao_mark_exit 0 || _tao_no_record=0
  # A signal may interrupt scontrol, which is then repeated.
  trap _tao_ended=1 HUP INT TERM
  if _tao_is_put_back || { ((_tao_ended)) && _tao_is_put_back; }; then
    _tao_no_record=1
    rm -f -- "$_tao_state/exit"
  fi
}

_tao_hosts=(localhost)
if ((_tao_job_nodes > 1)); then mapfile -t _tao_hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST"); fi
if ((${#_tao_hosts[@]} != _tao_job_nodes)); then
  echo "tao-slurm: the job needs $_tao_job_nodes nodes, but has ${#_tao_hosts[@]}: '$SLURM_JOB_NODELIST'" >&2
  exit 122
fi
# On nodes that other jobs share: a block of ports of this job, below those that the kernel gives away.
for ((_tao_try = 0; !_tao_port && _tao_try < 120; _tao_try++)); do
  _tao_port=$((20000 + (_tao_id + _tao_try) % 120 * 100))
  if (: <>"/dev/tcp/127.0.0.1/$_tao_port") 2>/dev/null; then _tao_port=0; fi
done
_tao_task=$(declare -f _tao_enter _tao_leave _tao_set_up)$'\n_tao_enter "$@"'
readonly _tao_task _tao_hosts
if ((_tao_every)); then _tao_measure; fi
_tao_components
for _tao_place in "${!_tao_names[@]}"; do
  if [ -n "$_tao_cause" ]; then break; fi
  # A step and its aids begin when the steps before have ended, with theirs.
  if [[ ${_tao_starts[_tao_place]} == @(step|aid) ]]; then
    if ! { _tao_await_steps && _tao_end_all 1 && [ -z "$_tao_cause" ]; }; then break; fi
    if ((_tao_watches)) && ! _tao_await_ready; then break; fi
    _tao_asked=''
  fi
  _tao_start "$_tao_place"
done
if [ -z "$_tao_cause" ] && _tao_await_steps && ((${#_tao_programs[@]})); then _tao_steps_succeed; fi
if ((_tao_watches)); then _tao_stop_probes; fi
for _tao_serve in 0 1 2 3; do _tao_end_all "$_tao_serve"; done
if ((_tao_every)); then kill "$_tao_measurer" 2>/dev/null; fi
if ((_tao_ended)); then exit "$_tao_ended"; fi
if ((_tao_limited)); then
  if ((_tao_max_requeues >= 0)); then _tao_requeue; fi
  exit 124
fi
((_tao_code = _tao_code ? _tao_code : _tao_late))
if ((!_tao_code)); then _tao_succeed; fi
exit "$_tao_code"
