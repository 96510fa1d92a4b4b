
# The programs that run now, the clock beside them, and what has happened to them.
_tao_programs=() _tao_clock='' _tao_seen=0
_tao_warned=0 _tao_told='' _tao_limited=0 _tao_ended=0 _tao_requeued=0 _tao_broken_off=0 _tao_marked=0
# What earlier runs have left in the log.
_tao_log_before=$(PATH=$_tao_path stat -c %s -- "$_tao_state/main.err" 2>/dev/null)
readonly _tao_log_before

# Writes a mark in one step: its first line counts. $1: its name, the rest: what it says.
_tao_mark() {
  local PATH=$_tao_path IFS=' ' name=$1
  shift
  # Not truncated: what was set aside for the mark stays its own, however full the disk has become.
  echo "$_tao_id $_tao_restart $*" | _tao_keep "$_tao_state/.$name.$_tao_id" ,notrunc \
    && mv -f -- "$_tao_state/.$name.$_tao_id" "$_tao_state/$name"
}
# Writes a file so that it says now whether there is room: a file system over a network may tell only when it is closed, and bash
# does not ask. $1: file, $2: more for dd.
_tao_keep() { dd of="$1" conv="fsync${2:-}" status=none; }
# Ends a run that has not begun: without its marks nobody would know what it has done.
_tao_no_room() {
  echo "tao-slurm: job $_tao_id stops here: its marks cannot be written into $_tao_state" >&2
  exit 119
}
_tao_now() { PATH=$_tao_path date +%s; }
_tao_began=$(_tao_now)
readonly _tao_began

# Whether this is the script, and not a child that has not become another program yet: a signal to all its processes finds that one
# with the traps of the script, and it would write a last word of its own.
_tao_is_itself() { ((BASHPID == $$)); }
_tao_finish() {
  local code=$?
  _tao_is_itself || exit "$code"
  # A signal goes to every process of the script, and those that write its last word must not end by it.
  trap '' HUP INT TERM USR1 USR2
  if [ -n "$_tao_clock" ]; then kill "$_tao_clock" 2>/dev/null; fi
  # A run that goes back into the queue has not ended, and one that was broken off has not come to its end.
  if ((!_tao_requeued && !_tao_broken_off && !_tao_marked)); then _tao_mark exit "$code" "$(_tao_now)"; fi
  exit "$code"
}
# A signal ends the script with a code of its own, once its programs have ended. $1: the code.
_tao_on_end() {
  _tao_seen=1 _tao_ended=$1
  if ((${#_tao_programs[@]} == 0)); then exit "$1"; fi
}
_tao_on_warning() {
  _tao_is_itself || return
  _tao_seen=1
  if ((_tao_warned)); then return; fi
  _tao_warned=1
  echo 'tao-slurm: a time limit is near; the program is told by SIGUSR1' >&2
  _tao_pass_warning_on
  _tao_mark warned "$(_tao_now)"
}
# To the programs that were not told yet. One that was just started does not listen, and would be ended by it.
_tao_pass_warning_on() {
  local PATH=$_tao_path program tries
  for program in "${_tao_programs[@]}"; do
    case " $_tao_told " in *" $program "*) continue ;; esac
    _tao_told+=" $program"
    for ((tries = 0; tries < 50; tries++)); do
      if _tao_hears_warnings "$program"; then break; fi
      sleep 0.1
    done
    # srun passes it on to every process of its step, and to nothing else.
    kill -USR1 "$program" 2>/dev/null
  done
}
# Whether a child has become another program and has blocked or caught SIGUSR1 (proc_pid_status(5)), or has ended. $1: its id.
_tao_hears_warnings() {
  local name value own
  read -r own <"/proc/$$/comm"
  while read -r name value; do
    case $name in
    Name:) if [ "$value" = "$own" ]; then return 1; fi ;;
    State:) case $value in Z*) return 0 ;; esac ;;
    SigBlk: | SigCgt:) if ((16#$value & 1 << 9)); then return 0; fi ;;
    esac
  done <"/proc/$1/status" || return 0
  return 1
}

rm -f -- "$_tao_state"/{exit,warned,limited,self_canceled,failed,failed_*}
# How far each status file goes now: what an earlier run has left there must never speak for this one.
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
# The room for the last word: without it nobody would know that the work was done.
if ! printf '%128s\n' '' | _tao_keep "$_tao_state/.exit.$_tao_id" \
  || ! _tao_mark started "$(_tao_now)" "${SLURMD_NODENAME:-$(hostname)}"; then
  _tao_no_room
fi
trap _tao_finish EXIT
trap '_tao_on_end 129' HUP
trap '_tao_on_end 130' INT
trap '_tao_on_end 143' TERM
trap _tao_on_warning USR1
