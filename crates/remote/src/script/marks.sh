
# The running programs with their roles and numbers of tasks, the clock, and the events so far.
_tao_programs=() _tao_roles=() _tao_tasks=() _tao_clock='' _tao_seen=0
_tao_warned=0 _tao_warnable=0 _tao_told='' _tao_limited=0 _tao_ended=0 _tao_requeued=0 _tao_broken_off=0 _tao_marked=0
# The size of the log from earlier runs.
_tao_log_before=$(stat -c %s -- "$_tao_state/main.err" 2>/dev/null)
readonly _tao_log_before

# Writes a marker atomically; its first line counts. $1: its name, the rest: its text.
_tao_mark() {
  local name=$1
  shift
  # Not truncated: the room reserved for the marker stays, even on a full disk.
  echo "$_tao_id $_tao_restart $*" | _tao_keep "$_tao_state/.$name.$_tao_id" ,notrunc \
    && mv -f -- "$_tao_state/.$name.$_tao_id" "$_tao_state/$name"
}
# Writes a file with fsync, so that a full disk is an error now: a network file system may report it only on close, which bash
# does not check. $1: file, $2: more options of dd.
_tao_keep() { dd of="$1" conv="fsync${2:-}" status=none; }
# Ends a run before its program starts: without markers its result would not be known.
_tao_no_room() {
  echo "tao-slurm: job $_tao_id stops here: its markers cannot be written to $_tao_state" >&2
  exit 119
}
_tao_now() { date +%s; }
_tao_began=$(_tao_now)
readonly _tao_began

# Whether this is the script, and not a child before its exec: such a child has the traps of the script, and on a signal it would
# write an exit record too.
_tao_is_itself() { ((BASHPID == $$)); }
_tao_finish() {
  local code=$?
  _tao_is_itself || exit "$code"
  # A signal goes to every process of the script, and those that write the exit record must survive it.
  trap '' HUP INT TERM USR1 USR2
  if [ -n "$_tao_clock" ]; then kill "$_tao_clock" 2>/dev/null; fi
  # A requeued run has not ended, and an interrupted run has no result.
  if ((!_tao_requeued && !_tao_broken_off && !_tao_marked)); then _tao_mark exit "$code" "$(_tao_now)"; fi
  exit "$code"
}
# A signal ends the script with its own code, after the programs have ended. $1: the code.
_tao_on_end() {
  _tao_seen=1 _tao_ended=$1
  if ((${#_tao_programs[@]} == 0)); then exit "$1"; fi
}
_tao_on_warning() {
  _tao_is_itself || return
  _tao_seen=1
  if ((_tao_warned)); then return; fi
  _tao_warned=1
  echo 'tao-slurm: a time limit is near; the program gets SIGUSR1' >&2
  _tao_mark warned "$(_tao_now)"
  if ((_tao_warnable)); then _tao_pass_warning_on; fi
}
# Passes SIGUSR1 on to the programs that have not got it yet. Waits for those that have not begun: during the setup of a container
# the signal would end its task. Returns when all have got it, or one has ended.
_tao_pass_warning_on() {
  local place waiting
  while :; do
    waiting=0
    for place in "${!_tao_programs[@]}"; do
      # The end of a program is noticed first, also of one that was warned.
      if ! kill -0 "${_tao_programs[place]}" 2>/dev/null; then return; fi
      case " $_tao_told " in *" $place "*) continue ;; esac
      if _tao_has_begun "${_tao_roles[place]}" "${_tao_tasks[place]}"; then
        _tao_told+=" $place"
        # srun passes it on to every process of its step, and to nothing else.
        kill -USR1 "${_tao_programs[place]}" 2>/dev/null
      else
        waiting=1
      fi
    done
    if ((!waiting)); then return; fi
    sleep 1
  done
}
# Whether all tasks of a program have left their marker. $1: its role, $2: the number of its tasks.
_tao_has_begun() {
  local begun=("$_tao_state/begun${1:+_$1}".*)
  [ -e "${begun[0]}" ] && ((${#begun[@]} >= $2))
}

rm -f -- "$_tao_state"/{exit,warned,limited,self_canceled,failed,failed_*,begun.*,begun_*}
# The size of each status file now: bytes from earlier runs must not count for this one.
_tao_note_files() {
  echo "run $_tao_restart"
  LC_ALL=C timeout 60 find -H "$_tao_results" -maxdepth 3 ! -path '*[[:cntrl:]]*' -name status.json -type f \
    -printf '%i %s %p\n' 2>/dev/null </dev/null
  echo
}
if [ -n "${_tao_results-}" ] && { ! _tao_note_files | _tao_keep "$_tao_state/.status_from.$_tao_id" \
  || ! mv -f -- "$_tao_state/.status_from.$_tao_id" "$_tao_state/status_from"; }; then
  _tao_no_room
fi
# Reserves room for the exit record: without it the result would not be known.
if ! printf '%128s\n' '' | _tao_keep "$_tao_state/.exit.$_tao_id" \
  || ! _tao_mark started "$(_tao_now)" "${SLURMD_NODENAME:-$(hostname)}"; then
  _tao_no_room
fi
trap _tao_finish EXIT
trap '_tao_on_end 129' HUP
trap '_tao_on_end 130' INT
trap '_tao_on_end 143' TERM
trap _tao_on_warning USR1
