#!/bin/bash
# Stands before the real scancel in the PATH of one job's program: a job that cancels itself has failed, and Slurm's
# word alone would say that somebody did not want it any more.
dir=${0%/*}
state=${dir%/*}
id=$(readlink -- "$state/run")

own=0 ids=0 named=0 signal='' before=''
for word; do
  if [ "$before" = --signal ]; then
    signal=$word
  else
    case $word in
    "$id") own=1 ids=1 ;;
    [0-9]*) ids=1 ;;
    --signal=*) signal=${word#*=} ;;
    -s?*) signal=${word#-s} ;;
    -n* | --name*) named=1 ;;
    esac
  fi
  before=$word
  if [ "$before" = -s ]; then before=--signal; fi
done
# KILL ends a job like no signal at all does; any other is only heard by its program.
case $signal in KILL | SIGKILL | 9) signal='' ;; esac
# Without an id, a filter such as --me or --user meets this job too, unless it asks for a name.
if [ -n "$id" ] && [ -z "$signal" ] && { ((own)) || ((!ids && !named)); }; then
  echo "$id ${SLURM_RESTART_COUNT:-0} $(date +%s)" >"$state/.self_cancelled.$$" \
    && mv -f -- "$state/.self_cancelled.$$" "$state/self_cancelled"
fi

IFS=: read -r -a places <<<"$PATH"
for place in "${places[@]}"; do
  if [ -x "$place/scancel" ] && [ ! "$place" -ef "$dir" ]; then exec "$place/scancel" "$@"; fi
done
echo 'scancel: not found' >&2
exit 127
