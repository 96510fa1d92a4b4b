# Stands before the real scancel in the PATH of the job's program: a job that cancels itself has failed, and Slurm's word alone would
# say that somebody did not want it any more.
_tao_scancel() {
  local dir=${0%/*} own=0 ids=0 named=0 signal='' before='' word place state id
  state=${dir%/*}
  id=$(readlink -- "$state/run")
  for word; do
    case $before in
    -s | --signal) signal=$word word='' ;;
    # What a filter asks for is no job, even if it is a number.
    -[AMRnpqtuw] | --account | --clusters | --name | --nodelist | --partition | --qos | --reservation | --state | --user | --wckey)
      word=''
      ;;
    esac
    case $word in
    "${id:--}") own=1 ids=1 ;;
    [0-9]*) ids=1 ;;
    --signal=*) signal=${word#*=} ;;
    -s?*) signal=${word#-s} ;;
    -n* | --name*) named=1 ;;
    esac
    before=$word
  done
  # KILL ends a job like no signal at all does; any other is only heard by its program.
  case ${signal^^} in KILL | SIGKILL | 9) signal='' ;; esac
  # Without an id, a filter such as --me or --user may meet this job too, unless it asks for a name. If it did, the job ends now, and
  # whoever reads the mark looks at its time.
  if [ -n "$id" ] && [ -z "$signal" ] && { ((own)) || ((!ids && !named)); }; then
    echo "$id ${SLURM_RESTART_COUNT:-0} $(date +%s)" >"$state/.self_canceled.$$" \
      && mv -f -- "$state/.self_canceled.$$" "$state/self_canceled"
  fi
  set -f
  local IFS=:
  for place in $PATH; do
    if [ -x "$place/scancel" ] && [ ! "$place" -ef "$dir" ]; then exec "$place/scancel" "$@"; fi
  done
  echo 'scancel: not found' >&2
  exit 127
}
# It is written here and not staged: that costs nobody who waits for the submission. That of an earlier run may still be in use, so
# it is replaced. No here-document: bash writes those into a file in $TMPDIR, which may be full.
_tao_add_scancel() {
  local new=$_tao_state/bin/.scancel.$_tao_id
  mkdir -p -- "$_tao_state/bin" \
    && { echo '#!/bin/bash' && declare -f _tao_scancel && echo '_tao_scancel "$@"'; } | _tao_keep "$new" \
    && chmod 755 -- "$new" && mv -f -- "$new" "$_tao_state/bin/scancel" && return
  # The job needs what room there is.
  rm -f -- "$new"
  return 1
}
if ! _tao_add_scancel; then
  echo "tao-slurm: $_tao_state/bin/scancel cannot be written: if this job cancels itself, it will not be known that it did" >&2
fi
