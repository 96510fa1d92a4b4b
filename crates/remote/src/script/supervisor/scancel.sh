
# Comes before the real scancel in the PATH of a program on the node: a job that cancels itself has failed, but Slurm reports it
# like a cancellation by a user.
_tao_scancel() {
  local dir=${0%/*} own=0 ids=0 named=0 signal='' before='' word place id
  id=$(readlink -- "${dir%/*}/run")
  for word; do
    case $before in
    -s | --signal) signal=$word word='' ;;
    # The value of a filter is not a job id, even if it is a number.
    -[AMRnpqtuw] | --account | --clusters | --name | --nodelist | --partition | --qos | --reservation | --state | --user | --wckey)
      word=''
      ;;
    esac
    case $word in
    "${id:--}" | "${SLURM_JOB_ID:--}" | "${id:--}_${SLURM_ARRAY_TASK_ID:--}") own=1 ids=1 ;;
    [0-9]*) ids=1 ;;
    --signal=*) signal=${word#*=} ;;
    -s?*) signal=${word#-s} ;;
    -n* | --name*) named=1 ;;
    esac
    before=$word
  done
  # KILL ends a job like a call without a signal; other signals only reach its program. Without an id, a filter such as --me or
  # --user may include this job, unless it has a name. If so, the job ends now; the reader of the marker compares the times.
  case ${signal^^} in '' | KILL | SIGKILL | 9) ;; *) id='' ;; esac
  if [ -n "$id" ] && ((own || (!ids && !named))); then
    echo "$id ${SLURM_RESTART_COUNT:-0} $(date +%s)" >"${dir%/*}/.self_canceled.$$" \
      && mv -f -- "${dir%/*}/.self_canceled.$$" "${dir%/*}/self_canceled"
  fi
  set -f
  local IFS=:
  for place in $PATH; do
    if [ -x "$place/scancel" ] && [ ! "$place" -ef "$dir" ]; then exec "$place/scancel" "$@"; fi
  done
  echo 'scancel: not found' >&2
  exit 127
}
# Written here and not staged, so that the submission is not slower. A copy of an earlier run may still be in use, so it is
# replaced by a rename. No here-document: bash writes those to a file in $TMPDIR, which may be full.
_tao_add_scancel() {
  local new=$_tao_state/bin/.scancel.$_tao_id
  mkdir -p -- "$_tao_state/bin" \
    && { echo '#!/bin/bash' && declare -f _tao_scancel && echo '_tao_scancel "$@"'; } | _tao_keep "$new" \
    && chmod -- 755 "$new" && mv -f -- "$new" "$_tao_state/bin/scancel" && return
  # The job needs the room.
  rm -f -- "$new"
  echo "tao-slurm: $_tao_state/bin/scancel cannot be written: if this job cancels itself, it will not be known that it did" >&2
}
_tao_add_scancel
