
# The programs that run now, the clock beside them, and what has happened to them.
_tao_programs=() _tao_clock='' _tao_warned=0 _tao_limited=0 _tao_ended=0 _tao_requeued=0 _tao_seen=0

# Writes a mark in one step: its first line counts. $1: its name, the rest: what it says.
_tao_mark() {
  local PATH=$_tao_path IFS=' ' name=$1
  shift
  # Not truncated: what was set aside for the mark stays its own, however full the disk has become.
  echo "$_tao_id $_tao_restart $*" 1<>"$_tao_state/.$name.$_tao_id" \
    && mv -f -- "$_tao_state/.$name.$_tao_id" "$_tao_state/$name"
}
# Ends a run that has not begun: without its marks nobody would know what it has done.
_tao_no_room() {
  echo "tao-slurm: job $_tao_id stops here: its marks cannot be written into $_tao_state" >&2
  exit 119
}
_tao_now() { PATH=$_tao_path date +%s; }
_tao_began=$(_tao_now)
readonly _tao_began

_tao_finish() {
  local code=$?
  if [ -n "$_tao_clock" ]; then kill "$_tao_clock" 2>/dev/null; fi
  # A run that goes back into the queue has not ended.
  if ((!_tao_requeued)); then _tao_mark exit "$code" "$(_tao_now)"; fi
  exit "$code"
}
# A signal ends the script with a code of its own, once its programs have ended. $1: the code.
_tao_on_end() {
  _tao_seen=1 _tao_ended=$1
  if ((${#_tao_programs[@]} == 0)); then exit "$1"; fi
}
_tao_on_warning() {
  _tao_seen=1
  if ((_tao_warned)); then return; fi
  _tao_warned=1
  echo 'tao-slurm: a time limit is near; the program is told by SIGUSR1' >&2
  # srun passes it on to every process of its step, and to nothing else.
  kill -USR1 "${_tao_programs[@]}" 2>/dev/null
  _tao_mark warned "$(_tao_now)"
}

rm -f -- "$_tao_state"/{exit,warned,limited,self_cancelled,failed,failed_*}
