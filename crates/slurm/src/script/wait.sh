
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
