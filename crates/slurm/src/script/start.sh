_tao_mark started "$(_tao_now)" "${SLURMD_NODENAME:-$(hostname)}"
trap _tao_finish EXIT
trap '_tao_on_end 129' HUP
trap '_tao_on_end 130' INT
trap '_tao_on_end 143' TERM
trap _tao_on_warning USR1
