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
