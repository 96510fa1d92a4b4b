
# The table: each component's name, start, tasks, time limit, and command in the list of words. Of those that have started: when, the
# process until it has ended, whether it was warned, its code if its time limit has ended it, and how many stages of that end have
# begun. The steps that may fail, and the first code of these. The running steps, the job's code, its cause, all ends. Whether a signal
# came, and each thing that it may mean.
_tao_names=() _tao_starts=() _tao_tasks=() _tao_limits=() _tao_from=() _tao_lengths=() _tao_words=()
_tao_serves=() _tao_begins=() _tao_programs=() _tao_told=() _tao_over=() _tao_pressed=() _tao_tolerated=() _tao_late=0
_tao_watches=0 _tao_steps=0 _tao_code=0 _tao_cause='' _tao_ends=''
_tao_warned=0 _tao_limited=0 _tao_ended=0 _tao_no_record=0 _tao_asked='' _tao_press_at=0 _tao_kill_from=0
_tao_measurer=''
_tao_now() { printf '%(%s)T' -1; }
_tao_began=$(_tao_now) _tao_time=$_tao_began
# The size of the log from earlier runs.
_tao_log_before=$(stat -c %s -- "$_tao_state/main.err" 2>/dev/null)
readonly _tao_began _tao_log_before

# Writes a file with fsync, so that a full disk is an error now: a network file system may report it only on close, which bash
# does not check. A pipe that the job has put there is an error, too. $1: file, $2: more options of dd.
_tao_keep() { dd of="$1" oflag=nonblock conv="fsync${2:-}" status=none; }
# Writes a marker atomically; its first line counts. Not truncated: the room reserved for it stays, even on a full disk.
_tao_mark() { # $1: its name, the rest: its text
  echo "$_tao_holder $_tao_restart ${*:2}" | _tao_keep "$_tao_state/.$1.$_tao_id" ,notrunc \
    && mv -f -- "$_tao_state/.$1.$_tao_id" "$_tao_state/$1"
}
# The exit record, with a line for each component: its name, its code, when it began and ended. $1: the code.
_tao_mark_exit() { _tao_mark exit "$1 $(_tao_now)"$'\n'"${_tao_cause:-done}$_tao_ends"; }
# A child before its exec has the traps of the script, and on a signal it would write an exit record too.
_tao_is_itself() { ((BASHPID == $$)); }
_tao_finish() {
  local code=$?
  _tao_is_itself || exit "$code"
  # A signal goes to every process of the script, and those that write the exit record must survive it.
  trap '' HUP INT TERM USR1 USR2
  # A requeued run has not ended, an interrupted one has no result, and a success is recorded already.
  if ((!_tao_no_record)); then _tao_mark_exit "$code"; fi
  exit "$code"
}
# A signal ends the script with its own code, after the programs have ended. $1: the code.
_tao_on_end() {
  _tao_is_itself || exit "$1"
  _tao_seen=1 _tao_ended=$1 _tao_cause=${_tao_cause:-signal}
}

# Each of many thousand tasks may have left a marker: more than the arguments of a program may have.
printf '%s\0' "$_tao_state"/{exit,warned,limited,self_canceled,services,usage,failed.*,begun.*,step.*} | xargs -0 rm -f --
# The size of each status file now: bytes from earlier runs must not count for this one.
_tao_note_files() {
  echo "run $_tao_restart"
  LC_ALL=C timeout 60 find -H "$_tao_results" -maxdepth 3 ! -path '*[[:cntrl:]]*' -name status.json -type f \
    -printf '%i %s %p\n' 2>/dev/null </dev/null
  echo
}
# Without markers the result of a run would not be known. Reserves room for its exit record.
if ! _tao_note_files | _tao_keep "$_tao_state/.status_from.$_tao_id" \
  || ! mv -f -- "$_tao_state/.status_from.$_tao_id" "$_tao_state/status_from" \
  || ! printf '%4095s\n' '' | _tao_keep "$_tao_state/.exit.$_tao_id" \
  || ! _tao_mark started "$(_tao_now)" "${SLURMD_NODENAME:-$(hostname)}"; then
  _tao_stop_here 119 "its markers cannot be written to $_tao_state"
fi
# A pipe that no one writes to.
exec {_tao_never}<> <(:)
trap _tao_finish EXIT
trap '_tao_on_end 129' HUP
trap '_tao_on_end 130' INT
trap '_tao_on_end 143' TERM
