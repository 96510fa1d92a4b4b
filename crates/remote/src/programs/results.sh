# shellcheck shell=bash
# Reads what the results of jobs are found in: files, lines of logs, and the ends of logs.

# One process for each job, because a file may hang. It reads lines "base TAB results directory", "out TAB path" and
# "err TAB path" for the places of logs, best first, and one for each part: "file TAB path", "line TAB log TAB pattern" or
# "tail TAB log"; a log is "out", "err" or a path. It writes each part to a file and prints "place word" for it. $1: the start of the
# names of these files. Returns 0 only if nothing is missing because of a failure.
# shellcheck disable=SC2016
collect_results='
  set -o pipefail
  kept=$1 base= out= err= place=0 left=1048576
  while IFS=$(printf "\t") read -r kind where pattern; do
    case $kind in
      base) base=$(realpath -e -- "$where" 2>/dev/null) ;;
      out) if [ -z "$out" ] && [ -f "$where" ]; then out=$where; fi ;;
      err) if [ -z "$err" ] && [ -f "$where" ]; then err=$where; fi ;;
    esac
    case $kind in file | line | tail) ;; *) continue ;; esac
    case $where in out) log=$out ;; err) log=$err ;; *) log=$where ;; esac
    if [ ! -f "$log" ]; then log=; fi
    word=found part=$kept.$place
    case $kind in
      file)
        real=$(realpath -e -- "$where" 2>/dev/null)
        if [ -z "$real" ]; then
          if [ -L "$where" ]; then word=odd; else word=missing; fi
        elif [ -z "$base" ] || [ "${real#"$base"/}" = "$real" ] || [ ! -f "$real" ]; then
          word=odd
        elif [ ! -r "$real" ]; then
          word=unreadable
        else
          # By now it may be a pipe, on which an ordinary open would wait.
          dd if="$real" of="$part" bs=64K iflag=count_bytes,fullblock,nonblock,nofollow count="$((left + 1))" status=none || exit 1
          size=$(stat -c %s -- "$part") || exit 1
          if ((size > left)); then
            rm -f -- "$part"
            word=large
          else
            left=$((left - size))
          fi
        fi
        ;;
      line)
        # A carriage return ends a line too. One that was read up to the limit is longer.
        if [ -z "$log" ]; then
          word=missing
        else
          tail -c 67108864 -- "$log" | tr "\r" "\n" | { grep -a -e "$pattern" || (($? == 1)); } | tail -n 1 | head -c 66560 >"$part"
          case ${PIPESTATUS[*]} in "0 0 0 "[01]*" 0") ;; *) exit 1 ;; esac
          if [ ! -s "$part" ]; then word=missing; fi
        fi
        ;;
      tail)
        if [ -z "$log" ]; then word=missing; else tail -c 1048577 -- "$log" >"$part" || exit 1; fi
        ;;
    esac
    echo "$place $word" || exit 1
    place=$((place + 1))
  done'

asked=()
# Takes the lines of a job's parts from stdin. $1: index, $2: results directory, $3: number of parts, $4: how many of the rest may
# be the log of its standard output; the others may be that of its standard error.
want_results() {
  local index=$1 base=$2 parts=$3 outs=$4 i line
  shift 4
  mkdir -p -- "$tmp/asked" || lost
  {
    printf 'base\t%s\n' "$base"
    for ((i = 1; i <= $#; i++)); do
      if ((i <= outs)); then printf 'out\t%s\n' "${!i}"; else printf 'err\t%s\n' "${!i}"; fi
    done
    for ((i = 0; i < parts; i++)); do
      IFS= read -r line
      printf '%s\n' "$line"
    done
  } >"$tmp/asked/$index" || lost
  asked+=("$index")
}

# Prints the parts, and for each job that is left for the next call a line with its index. The indices of jobs whose parts could
# not be read go to $tmp/unread too. $1: the most bytes of all parts.
say_results() {
  local left=$1 begun=$SECONDS next=0 index place word size sum first
  local -A got=()
  local -a batch readers names=()
  if ((${#asked[@]} == 0)); then return; fi
  mkdir -- "$tmp/results" "$tmp/answers" || lost
  : >"$tmp/put_off" || lost
  while ((next < ${#asked[@]})); do
    batch=("${asked[@]:next:8}")
    next=$((next + 8))
    if ((left <= 0 || SECONDS - begun >= 30)); then
      printf '%s\n' "${batch[@]}" >>"$tmp/put_off" || lost
      continue
    fi
    readers=()
    for index in "${batch[@]}"; do
      timeout -k 1 15 bash -c "$collect_results" collect_results "$tmp/results/$index" \
        <"$tmp/asked/$index" >"$tmp/answers/$index" 2>/dev/null &
      readers+=($!)
    done
    for first in "${!readers[@]}"; do
      index=${batch[first]}
      if ! wait "${readers[first]}"; then
        unread "$index"
        printf '%s\n' "$index" >>"$tmp/put_off" || lost
        rm -f -- "$tmp/answers/$index" "$tmp/results/$index".*
      fi
    done
    while read -r place size; do got[$place]=$size; done < <(sizes "$tmp/results")
    for index in "${batch[@]}"; do
      if [ ! -e "$tmp/answers/$index" ]; then continue; fi
      sum=0
      while read -r place word; do sum=$((sum + ${got[$index.$place]-0})); done <"$tmp/answers/$index"
      if ((sum > left)); then
        left=0
        printf '%s\n' "$index" >>"$tmp/put_off" || lost
        continue
      fi
      left=$((left - sum))
      while read -r place word; do
        size=${got[$index.$place]-0}
        say "PART $index $place $word $size"
        if ((size > 0)); then names+=("$index.$place"); fi
      done <"$tmp/answers/$index"
    done
  done
  say_bytes PARTS "$tmp/results" ${names[@]+"${names[@]}"}
  sed 's/^/LATER /' "$tmp/put_off" >"$tmp/said" || lost
  say_file "$tmp/said"
}
