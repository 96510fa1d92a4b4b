
_tao_on_limit() {
  _tao_seen=1
  # Other processes may send this signal too; only after the limit is it the clock's.
  if (($(_tao_now) - _tao_began < _tao_limit)); then return; fi
  _tao_limited=1
  echo "tao-slurm: the job has reached its own time limit of $_tao_limit s; its program is terminated" >&2
  _tao_mark limited "$(_tao_now)"
}
trap _tao_on_limit USR2

# Runs beside the programs: warns this script, signals the limit, and then terminates the programs, with SIGTERM first.
# $1: seconds to the limit, $2: how long before it to warn (0: not at all).
_tao_run_clock() {
  # Its sleep must not outlive it. A trap may run between any two commands, so only $! names the sleep reliably; before the first
  # sleep it names this no-op.
  : &
  trap 'kill $! 2>/dev/null; exit' TERM
  _tao_sleep() {
    sleep "$1" >/dev/null 2>&1 &
    wait $!
  }
  _tao_sleep $(($1 - $2))
  if (($2)); then
    kill -USR1 $$
    _tao_sleep "$2"
  fi
  kill -USR2 $$
  _tao_ask_to_end
  _tao_sleep 60
  kill -TERM "${_tao_programs[@]}" 2>/dev/null
  _tao_sleep 15
  kill -KILL "${_tao_programs[@]}" 2>/dev/null
}
