
# The rules of services: from when on steps may use one, how it shows that it still works, and how often it may start again.
# Of each, by its place in the table: the seconds between probes until it is ready, the most seconds of a probe, the seconds in which it
# must be ready, the seconds between probes from then on, how many of these may fail in a row, how often it may start again, and its probe.
_tao_watches=1 _tao_every=() _tao_probe_limit=() _tao_ready_limit=() _tao_live_every=() _tao_most_missed=() _tao_most_again=()
_tao_probe_from=() _tao_probe_length=() _tao_probe_words=()
# Its state, the probes that failed in a row, when the next one is due, the process of one that runs, how often it has started again, when
# it is killed if it was given up, and what there was before its start: the bytes of its logs, the time of its file. What was last kept about all of them, and when.
_tao_states=() _tao_missed=() _tao_due=() _tao_probes=() _tao_again=() _tao_kill_at=() _tao_said='' _tao_said_at=0
declare -A _tao_logged=()
# Gives rules to the service that was added last: the six numbers as above, and the words of its probe. Without one it is ready when it has
# begun.
_tao_watch_it() {
  local place=$((${#_tao_names[@]} - 1))
  _tao_every[place]=$1 _tao_probe_limit[place]=$2 _tao_ready_limit[place]=$3
  _tao_live_every[place]=$4 _tao_most_missed[place]=$5 _tao_most_again[place]=$6 _tao_again[place]=0
  _tao_probe_from[place]=${#_tao_probe_words[@]} _tao_probe_length[place]=$(($# - 6)) _tao_probe_words+=("${@:7}")
  _tao_reset "$place"
}
# Before a service ($1) starts: it is not ready, and what is there already does not count.
_tao_reset() {
  local stream probe=("${_tao_probe_words[@]:_tao_probe_from[$1]:_tao_probe_length[$1]}")
  _tao_states[$1]=starting _tao_missed[$1]=0 _tao_due[$1]=0
  if ((!_tao_probe_length[$1])); then _tao_states[$1]=ready; fi
  for stream in out err; do
    _tao_logged[$1.$stream]=$(stat -c %s -- "$_tao_logs/${_tao_names[$1]}/0.$stream" 2>/dev/null)
  done
  if [ "${probe[0]-}" = file ]; then _tao_logged[$1.file]=$(timeout 10 stat -c %y -- "${probe[1]}" 2>/dev/null); fi
}
# Runs the probe of a service ($1), which may hang: within so many seconds ($2). The rest: its words. HTTP/1.0 has no chunks.
_tao_probe() {
  local log=$_tao_logs/${_tao_names[$1]}/0 program
  case $3 in
  # A host, a port.
  tcp) program='exec 3<>"/dev/tcp/$2/$3"' ;;
  # A host, a port, a path, the status, what the body must have, how often.
  http) program='exec 3<>"/dev/tcp/$2/$3" || exit
    printf "GET %s HTTP/1.0\r\nHost: %s:%s\r\nConnection: close\r\n\r\n" "$4" "$2" "$3" >&3
    read -r -n 200 _ status _ <&3
    [[ $status == "$5"* ]] && { [ -z "$6" ] || (($(head -c 1048576 <&3 | grep -aoE -e "$6" | wc -l) >= $7)); }' ;;
  # A file, when it was written before the start.
  file)
    program='written=$(stat -c %y -- "$2") && [ "$written" != "$3" ]'
    set -- "${@:1:4}" "${_tao_logged[$1.file]}"
    ;;
  # What a line must have.
  log)
    program='{ tail -c "+$3" -- "$5.out"; tail -c "+$4" -- "$5.err"; } | grep -aE -e "$2"'
    set -- "${@:1:4}" "$((_tao_logged[$1.out] + 1))" "$((_tao_logged[$1.err] + 1))" "$log"
    ;;
  esac
  exec timeout -k 1 "$2" bash -c "$program" "${@:2}" </dev/null >/dev/null 2>&1
}
_tao_stop_probe() { # $1: the service
  if [ -n "${_tao_probes[$1]-}" ]; then kill "${_tao_probes[$1]}" 2>/dev/null; fi
  unset "_tao_probes[$1]"
}
_tao_stop_probes() {
  local place
  for place in "${!_tao_probes[@]}"; do _tao_stop_probe "$place"; done
}
# Ends a service ($1) that may start again, or the job with this code ($2). $3: what the service has done.
_tao_give_up() {
  if ((_tao_again[$1] >= _tao_most_again[$1])); then
    _tao_fail "$1" "$2" "$3"
  else
    echo "tao-slurm: the service ${_tao_names[$1]} $3; it is ended" >&2
    _tao_states[$1]=ending _tao_kill_at[$1]=$(($(_tao_now) + 15))
    kill -TERM "${_tao_programs[$1]}" 2>/dev/null
  fi
}
# Kills the step of a service ($1), and then its srun, which may hang.
_tao_kill() {
  local step=''
  if [ -f "$_tao_state/step.${_tao_names[$1]}" ]; then read -r -d '' -n 400 step _ <"$_tao_state/step.${_tao_names[$1]}"; fi
  if [[ $step =~ ^[0-9]+$ ]] && _tao_show 30 >/dev/null; then
    timeout 30 scancel --signal=KILL "$_tao_self.$step" >&2 </dev/null
  fi
  kill -KILL "${_tao_programs[$1]}" 2>/dev/null
}
# Starts a service ($1) again that has ended, if it may. What it has used may need some seconds to be free.
_tao_start_again() {
  if [ -n "$_tao_cause" ] || ((_tao_again[$1] >= _tao_most_again[$1])); then return 1; fi
  ((_tao_again[$1] += 1))
  echo "tao-slurm: the service ${_tao_names[$1]} has ended with code $_tao_end; it starts again," \
    "for time ${_tao_again[$1]} of at most ${_tao_most_again[$1]}" >&2
  rm -f -- "$_tao_state/failed.${_tao_names[$1]}" "$_tao_state/step.${_tao_names[$1]}" "$_tao_state/begun.${_tao_names[$1]}".*
  _tao_stop_probe "$1"
  _tao_pause 3
  if [ -n "$_tao_cause" ]; then return; fi
  _tao_reset "$1"
  _tao_start "$1"
  return 0
}
# A step that failed may have lost a service, whose end srun tells some seconds later. Then the job ends with that. A service that has ended
# in order is not to blame.
_tao_find_cause() {
  local place tries serve=1
  for ((tries = 0; serve && tries < 25; tries++)); do
    serve=0
    for place in "${!_tao_programs[@]}"; do
      if ((_tao_serves[place] < 2 || _tao_again[place] < _tao_most_again[place])); then continue; fi
      serve=1
      if kill -0 "${_tao_programs[place]}" 2>/dev/null; then continue; fi
      _tao_reap "$place"
      if ((_tao_end)); then _tao_fail "$place" "$_tao_end" "has ended with code $_tao_end"; fi
    done
    if [ -n "$_tao_cause" ]; then return; fi
    if ((serve)); then read -r -t 0.2 -u "$_tao_never"; fi
  done
}
# Takes the answer of a service ($1) to its probe. $2: the code of the probe, $3: now.
_tao_hear() {
  local name=${_tao_names[$1]}
  if ((!$2)); then
    case ${_tao_states[$1]} in
    starting) echo "tao-slurm: the service $name is ready after $(($3 - _tao_begins[$1])) s" >&2 ;;
    failing) echo "tao-slurm: the service $name answers again" >&2 ;;
    esac
    _tao_states[$1]=ready _tao_missed[$1]=0
  elif [ "${_tao_states[$1]}" != starting ]; then
    ((_tao_missed[$1] += 1))
    _tao_states[$1]=failing
    if ((_tao_missed[$1] >= _tao_most_missed[$1])); then
      _tao_give_up "$1" 125 "has failed ${_tao_missed[$1]} probes in a row"
    fi
  fi
}
# Looks at each service: takes the answer to its probe, or starts the probe if it is due.
_tao_watch() {
  local place now=$_tao_time
  for place in "${!_tao_states[@]}"; do
    if [ -z "${_tao_programs[place]-}" ]; then continue; fi
    if [ "${_tao_states[place]}" = ending ]; then
      if ((now >= _tao_kill_at[place])); then _tao_kill "$place"; fi
    elif [ -z "${_tao_probes[place]-}" ]; then
      if ((_tao_probe_length[place] && now >= _tao_due[place])); then
        _tao_probe "$place" "${_tao_probe_limit[place]}" \
          "${_tao_probe_words[@]:_tao_probe_from[place]:_tao_probe_length[place]}" {_tao_never}<&- &
        _tao_probes[place]=$!
      fi
    elif ! kill -0 "${_tao_probes[place]}" 2>/dev/null; then
      wait "${_tao_probes[place]}"
      _tao_hear "$place" "$?" "$now"
      unset "_tao_probes[place]"
      case ${_tao_states[place]}-${_tao_live_every[place]} in
      starting-*) _tao_due[place]=$((now + _tao_every[place])) ;;
      # A time that never comes.
      *-0) _tao_due[place]=99999999999 ;;
      *) _tao_due[place]=$((now + _tao_live_every[place])) ;;
      esac
    fi
    if [ "${_tao_states[place]}" = starting ] && ((now - _tao_begins[place] >= _tao_ready_limit[place])); then
      _tao_give_up "$place" 126 "is not ready after ${_tao_ready_limit[place]} s"
    fi
  done
  _tao_say_services "$now"
}
# Keeps which services are not ready: the message of the job has them. Of one that starts since when and its limit, of one that does not
# answer how often and how often it may. $1: now.
_tao_say_services() {
  local place text=''
  for place in "${!_tao_states[@]}"; do
    if [ -z "${_tao_programs[place]-}" ]; then continue; fi
    case ${_tao_states[place]} in
    ready) continue ;;
    failing) text+="${_tao_names[place]} failing ${_tao_missed[place]} ${_tao_most_missed[place]};" ;;
    *) text+="${_tao_names[place]} ${_tao_states[place]} ${_tao_begins[place]} ${_tao_ready_limit[place]};" ;;
    esac
  done
  if [ "$text" = "$_tao_said" ] && { [ -z "$text" ] || (($1 - _tao_said_at < 10)); }; then return; fi
  _tao_said=$text _tao_said_at=$1
  _tao_mark services "$1 $text"
}
# Waits until all services that have started are ready.
_tao_await_ready() {
  local place waits=1
  while ((waits)); do
    if ! _tao_look; then return 1; fi
    waits=0
    for place in "${!_tao_states[@]}"; do
      if [ -n "${_tao_programs[place]-}" ] && [ "${_tao_states[place]}" != ready ]; then waits=1; fi
    done
    if ((waits)); then _tao_pause 0.2; fi
  done
}
