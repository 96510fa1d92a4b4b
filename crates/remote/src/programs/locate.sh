# shellcheck shell=bash
# Looks up uncertain submissions.
#
# stdin: a line "number of jobs, since"; for each job a line "index, job name, state directory, base directory, send,
# cleared".

# Any part of a pipe that writes a list may run out of room.
set -o pipefail

# Claims the fences that are free, so that a late submission has no effect.
#
# It enters the base directory first, and creates nothing in an empty one: that may be an unmounted mount point.
# shellcheck disable=SC2016
fence='
  at=
  enter() {
    cd -- "$1" && [ -n "$(find . -mindepth 1 -maxdepth 1 -print -quit)" ]
  }
  while IFS=$(printf "\t") read -r index dir base send cleared; do
    place=${dir#"$base"/} shut= begun=
    if [ "$at" != "$base" ]; then
      at=
      if [ -d "$base" ]; then
        if enter "$base"; then at=$base; fi
      # It does not exist before the first submission.
      elif enter "${base%/*}" && mkdir -p -- "${base##*/}" && cd -- "${base##*/}"; then
        at=$base
      fi
    fi
    if [ -n "$at" ]; then
      mkdir -p -- "$place"
      ln -s no-owner "$place/submit.$send"
      for claim in "$place"/submit.*; do
        number=${claim##*.}
        case $number in "" | *[!0-9]*) continue ;; esac
        if [ "$number" = "$send" ]; then shut=1; fi
        if [ "$number" -gt "$cleared" ] && [ ! -L "$claim" ]; then begun=1; fi
      done
    fi
    if [ -z "$shut" ]; then
      tell "UNREAD $index"
    elif [ -z "$begun" ]; then
      tell "LINE $index"
    fi
    tell THROUGH
  done'

IFS=$'\t' read -r count since || give_up 'the list of jobs did not arrive whole'
take_lines "$tmp/jobs" "$count" jobs
cut -f2 -- "$tmp/jobs" >"$tmp/names" || lost
cut -f1,3 -- "$tmp/jobs" >"$tmp/states" || lost
cut -f1,4 -- "$tmp/jobs" >"$tmp/bases" || lost
cut -f1,3-6 -- "$tmp/jobs" >"$tmp/sends" || lost
: >"$tmp/unread" || lost

# Runs a query about all names, 200 at a time. $@: the query, without the names at its end. Sets code.
ask_all() {
  local names list begun=$SECONDS
  : >"$tmp/rows" || lost
  : >"$tmp/err" || lost
  code=0
  while mapfile -t -n 200 names && ((${#names[@]} > 0)); do
    if ((SECONDS - begun > 30)); then
      code=124
      break
    fi
    list=$(IFS=, && printf '%s' "${names[*]}")
    keep_for 30 "$@" "$list" >>"$tmp/rows" 2>"$tmp/err" </dev/null
    code=$?
    if ((code == 74)); then lost; fi
    if [ "$code" = 0 ] && complains "$tmp/err"; then code=1; fi
    if [ "$code" != 0 ]; then break; fi
  done <"$tmp/names"
}

# Prints what the query found. $1: what it is called, $2: what its lines are called.
say_found() {
  say "$1 $code $(encoded_tail "$tmp/err" 2000)"
  awk -v tag="$2" '{ print tag " " substr($0, 1, 1000) }' "$tmp/rows" >"$tmp/framed" || lost
  say_file "$tmp/framed"
}

# Whether the file system of a base directory is mounted: an unmounted mount point is empty or missing. Listing a directory
# makes an NFS client ask the server. $1: base directory.
is_there() {
  local dir
  for dir in "$1" "${1%/*}"; do
    if [ -z "$dir" ]; then return 1; fi
    timeout -k 1 5 find "$dir/" -mindepth 1 -maxdepth 1 -print -quit >"$tmp/inside" 2>"$tmp/outside" </dev/null
    if [ -s "$tmp/inside" ]; then return 0; fi
    # It does not exist before the first submission.
    if ! grep -q ': No such file or directory$' -- "$tmp/outside"; then return 1; fi
  done
  return 1
}

# Marks the jobs whose file system is not there as unread.
check_bases() {
  local base
  cut -f2 -- "$tmp/bases" | sort -u >"$tmp/distinct" || lost
  while IFS= read -r base; do
    if ! is_there "$base"; then
      awk -F'\t' -v base="$base" '$2 == base { print $1 }' "$tmp/bases" >>"$tmp/unread" || lost
    fi
  done <"$tmp/distinct"
}

printf -v now '%(%s)T' -1
say "TIME $now"
# First of all: a submission that has not begun now never will.
walk "$fence" "$tmp/sends"
sed 's/^/UNBEGUN /' "$tmp/lines" >"$tmp/framed" || lost
say_file "$tmp/framed"
# With -a, because a hidden partition hides our own jobs too. -a also shows jobs that run elsewhere in a federation. %F: tasks
# have the id of their array.
ask_all squeue --me -a -h -t all -o '%F|%T|%j' -n
awk '!/^[^|]*[|]REVOKED[|]/ && !seen[$0]++' "$tmp/rows" >"$tmp/ours" || lost
mv -f -- "$tmp/ours" "$tmp/rows" || lost
say_found SQUEUE ROW
# Without -S sacct searches the present day only. In UTC, as the preamble sets.
from=$(date -d "@$since" +%Y-%m-%dT%H:%M:%S)
ask_all sacct -X -P -n --delimiter='|' -S "$from" -o JobID,JobName --name
awk -F'|' -v OFS='|' '{ sub("_.*", "", $1) } !seen[$0]++' "$tmp/rows" >"$tmp/ours" || lost
mv -f -- "$tmp/ours" "$tmp/rows" || lost
say_found SACCT RECORD

check_bases
read_each "$tmp/states" slurm_id
sed -n 's/^\([0-9]*\) slurm_id /ID \1 /p' "$tmp/lines" >"$tmp/framed" || lost
say_file "$tmp/framed"
say_claims "$tmp/states"
# Again: the file system may have come and gone during the search.
check_bases
sort -n -u -- "$tmp/unread" | sed 's/^/UNREAD /' >"$tmp/framed" || lost
say_file "$tmp/framed"
finish
