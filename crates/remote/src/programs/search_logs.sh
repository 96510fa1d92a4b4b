# shellcheck shell=bash
# Searches logs for a text or a POSIX extended regular expression, bounded in time, bytes and hits. The answer tells how far it came.

search_seconds=5
search_bytes=2147483648
# A part of a log is read with this much around it: no match is lost at its ends, and lines begin where they do.
search_overlap=65536
# Of the text around a match.
window_before=600
window_after=1200

# Reads "line:offset:match" and prints "offset length" for each hit, and "F" if there are more than asked for. A match in the line of a hit and
# near it is none of its own.
# shellcheck disable=SC2016
choose_hits='
  {
    first = index($0, ":")
    rest = substr($0, first + 1)
    second = index(rest, ":")
    at = base + substr(rest, 1, second - 1)
    line = substr($0, 1, first - 1)
    if (line == last && at < near) next
    last = line
    near = at + 200
    if (at < from || at >= end) next
    if (count == most) { print "F"; exit }
    count++
    printf "%.0f %d\n", at, length(rest) - second
  }'

# Searches a part of $path for matches that begin in it. $1: its first byte, $2: its end, $3: the most hits, $4: seconds. Returns 1 if the
# part was not searched to its end.
search_part() {
  local base=$(($1 > search_overlap ? $1 - search_overlap : 0))
  timeout -k 1 "$4" dd if="$path" bs=1M iflag=skip_bytes,count_bytes,fullblock skip="$base" count="$(($2 + search_overlap - base))" \
    2>/dev/null </dev/null \
    | (
      # A log without a newline must not take all memory of the host.
      ulimit -v 1000000
      exec timeout -k 1 "$4" grep -a -b -n -o "${options[@]}" -f "$tmp/pattern" 2>/dev/null
    ) | cut -b 1-1030 | awk -v base="$base" -v from="$1" -v end="$2" -v most="$3" "$choose_hits" >"$tmp/part"
  set -- "${PIPESTATUS[@]}"
  if grep -q F -- "$tmp/part"; then return 0; fi
  ((!$1 && $2 <= 1 && !$3 && !$4))
}

# Prints the hits of a part. $1: index of the question, $2: index of the log.
say_hits() {
  local at length start
  while read -r at length; do
    if [ "$at" = F ]; then
      is_full=1
      break
    fi
    start=$((at > window_before ? at - window_before : 0))
    dd if="$path" bs=64K iflag=skip_bytes,count_bytes,fullblock skip="$start" count="$((at - start + window_after))" \
      of="$tmp/window" 2>/dev/null </dev/null
    say "HIT $1 $2 $at $length $start $(encoded_tail "$tmp/window" 1800)"
    hits=$((hits - 1))
    past=$((at + 1))
  done <"$tmp/part"
}

# $1: index of the question, $2: index of the log, $3: where to begin, the rest: the paths where it may be.
search_log() {
  local index=$1 log=$2 at=$3 place=0 path='' size to step=8388608 left
  shift 3
  for path; do
    if [ -f "$path" ]; then break; fi
    place=$((place + 1)) path=''
  done
  if [ -z "$path" ] || ! size=$(stat -L -c %s -- "$path" 2>/dev/null </dev/null); then
    say "NONE $index $log"
    return
  fi
  if [ ! -r "$path" ]; then
    say "CLOSED $index $log"
    return
  fi
  at=$((at < size ? at : size))
  while ((at < size && !is_full)); do
    left=$((search_seconds - SECONDS + begun))
    if ((left <= 0 || search_bytes <= 0)); then break; fi
    step=$((step < search_bytes ? step : search_bytes))
    to=$((size - at < step ? size : at + step)) past=$at
    if ! search_part "$at" "$to" "$hits" "$left"; then break; fi
    search_bytes=$((search_bytes - to + at))
    say_hits "$index" "$log"
    at=$((is_full ? past : to)) step=$((step < 134217728 ? step * 2 : step))
  done
  say "SEARCHED $index $log $place $size $at"
}

# $1: index of the question, $2: where to begin, $3: the most hits, $4: the number of logs.
say_search() {
  local index=$1 from=$2 hits=$3 count=$4 how pattern log number is_full=0 past begun=$SECONDS candidate
  local -a options=() numbers=() candidates=()
  IFS= read -r how || give_up 'the pattern did not arrive'
  IFS= read -r pattern || give_up 'the pattern did not arrive'
  for ((log = 0; log < count; log++)); do
    IFS= read -r number || give_up 'the list of paths did not arrive whole'
    numbers+=("$number")
    for (( ; number > 0; number--)); do
      IFS= read -r candidate || give_up 'the list of paths did not arrive whole'
      candidates+=("$candidate")
    done
  done
  case $how in
    *expression*) options=(-E) ;;
    *) options=(-F) ;;
  esac
  case $how in *any-case*) options+=(-i) ;; esac
  printf '%s\n' "$pattern" >"$tmp/pattern" || lost
  timeout -k 1 2 grep "${options[@]}" -f "$tmp/pattern" </dev/null >/dev/null 2>"$tmp/err"
  if [ $? = 2 ]; then
    say "INVALID $index $(encoded_tail "$tmp/err" 300)"
    return
  fi
  for ((log = 0; log < count; log++)); do
    search_log "$index" "$log" "$from" ${candidates[@]+"${candidates[@]:0:numbers[log]}"}
    candidates=(${candidates[@]+"${candidates[@]:numbers[log]}"})
  done
}

