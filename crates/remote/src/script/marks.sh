
# The running programs, the clock, and the events so far.
_tao_programs=() _tao_clock='' _tao_seen=0
_tao_warned=0 _tao_told='' _tao_limited=0 _tao_ended=0 _tao_requeued=0 _tao_broken_off=0 _tao_marked=0
# The size of the log from earlier runs.
_tao_log_before=$(PATH=$_tao_path stat -c %s -- "$_tao_state/main.err" 2>/dev/null)
readonly _tao_log_before

# Writes a marker atomically; its first line counts. $1: its name, the rest: its text.
_tao_mark() {
  local PATH=$_tao_path IFS=' ' name=$1
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
_tao_now() { PATH=$_tao_path date +%s; }
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
  _tao_pass_warning_on
  _tao_mark warned "$(_tao_now)"
}
# Passes SIGUSR1 on to the programs that have not got it yet. A program that has just started does not handle it yet, and would be
# killed by it.
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
# Whether a child has called exec and blocks or catches SIGUSR1 (proc_pid_status(5)), or has ended. $1: its id.
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
