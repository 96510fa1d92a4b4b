
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
# srun returns 0 when the node of a step fails, as if its tasks there had ended well (_node_fail_handler of its source), and only
# its log tells. Whether it does, in the last MiB.
_tao_node_has_failed() {
  local PATH=$_tao_path bytes
  bytes=$(stat -c %s -- "$_tao_state/main.err" 2>/dev/null)
  ((bytes -= _tao_log_before, bytes = bytes > 1048576 ? 1048576 : bytes))
  ((bytes > 0)) && tail -c "$bytes" -- "$_tao_state/main.err" | grep -aqF 'srun: error: Node failure on '
}
