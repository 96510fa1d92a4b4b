# shellcheck shell=bash
# Searches the logs of jobs that may have failed for lines that look like errors.

# What such a line has, in any case of letters. It may have one and be none: the caller decides.
error_pattern='error|exception|traceback|fatal|fail|abort|assert|panic|kill|signal|segmentation|core dump|out of memory|oom|no space left'
error_pattern+='|quota|denied|not found|no such|cannot |can.t |could ?n.t |could not|unable to|timed out|time ?out|refused|closed by|reset by peer'
error_pattern+='|unreachable|no route|exit(ed)? (with|code|status)|exit(code|ed)|terminat|xid|uncorrectable|nccl warn|illegal|undefined symbol'
error_pattern+='|unrecognized|unexpected|exhausted|insufficient|invalid|corrupt|stale|died|dead|crash|cancel|preempt|time limit|exceed'
error_pattern+='|mismatch|not enough|larger than|less than|unbound variable|not supported|unsupported|incompatible|what\(\)|interrupt|expired'
error_pattern+='|root cause|(rank|host|time|exitcode) +: |\[rank[0-9]+\]: [a-z_.]+(:|$)|stopiteration|broken|lost|has no |requires|must be|is not |missing|terminating|already in use|aborted|giving up'

# Reads what grep prints, cut to lines of bounded length: "offset:line" for a line of its pattern, "offset-line" for one around it,
# and "--" between groups. Prints "M offset line" and "C offset line", and "G" if there were more. The first lines are kept, each kind of
# message three times, and the last ones.
# shellcheck disable=SC2016
choose_lines='
  # $1: a line of grep.
  function shown(line,   at) {
    match(line, /[^0-9]/)
    at = RSTART
    return (substr(line, at, 1) == ":" ? "M " : "C ") sprintf("%.0f", base + substr(line, 1, at - 1)) " " substr(line, at + 1, 1000)
  }
  function put(line,   text) {
    if (leads) {
      text = shown(line)
      used += length(text) + 1
      if (used <= most * 2 / 3) {
        print text
        return
      }
    }
    last[count++ % 200] = line
  }
  $0 == "--" { around = 0; after = 0; next }
  {
    match($0, /[^0-9]/)
    # The part of a log begins within a line.
    if (base > 0 && substr($0, 1, RSTART - 1) == "0") next
    if (substr($0, RSTART, 1) == "-") {
      if (after > 0) {
        after--
        put($0)
      } else {
        if (around == 3) { before1 = before2; before2 = before3; around = 2 }
        around++
        if (around == 1) before1 = $0; else if (around == 2) before2 = $0; else before3 = $0
      }
      next
    }
    kind = substr($0, RSTART + 1, 160)
    gsub(/[0-9]+/, "#", kind)
    if (index(kind, "/")) gsub(/\/[^ ]*/, "/", kind)
    leads = 0
    if (kinds < 20000 || kind in seen) {
      if (!(kind in seen)) kinds++
      leads = ++seen[kind] <= 3
    }
    if (around > 0) put(before1)
    if (around > 1) put(before2)
    if (around > 2) put(before3)
    around = 0
    put($0)
    after = 1
  }
  END {
    first = count
    left = most / 3
    while (first > 0 && first > count - 200) {
      left -= length(shown(last[(first - 1) % 200])) + 1
      if (left < 0) break
      first--
    }
    for (i = first; i < count; i++) print shown(last[i % 200])
    if (first > 0) print "G"
  }'

# Searches the logs of one job, in a process of its own, because a file system may hang. $1: the file for what is found, $2: the pattern,
# $3: the program of awk, $4: the most bytes for all logs, $5: of each log, this many bytes from its start are read, and an
# eighth of that from its end, $6: directory of component logs, $7: how many of the rest may be standard output; the others may be standard error.
# shellcheck disable=SC2016
find_errors='
  found=$1 pattern=$2 choose=$3 most=$4 part=$5 roles=$6 outs=$7
  shift 7
  # A log without a newline must not take all memory of the host.
  ulimit -v 1000000
  names=() paths=()
  add_first() {
    local name=$1 path
    shift
    for path; do
      if [ -f "$path" ]; then
        names+=("$name") paths+=("$path")
        return
      fi
    done
  }
  add_first main.err "${@:outs+1}"
  add_first main.out "${@:1:outs}"
  if [ "$roles" != - ]; then
    while IFS= read -r path; do
      names+=("${path#"$roles"/}") paths+=("$path")
    done < <(find "$roles" -mindepth 2 -maxdepth 2 -type f -regextype posix-extended -regex ".*/[0-9]{1,6}\.(out|err)" 2>/dev/null | sort | head -n 64)
  fi
  if ((${#paths[@]} == 0)); then exit 0; fi
  most=$((most / ${#paths[@]}))
  if ((most < 3072)); then most=3072; fi
  # Searches its stdin. $1: the offset of the part, $2: the most bytes to print. A carriage return ends a line too.
  search() {
    tr "\r\000" "\n " | grep -abiE -B 3 -A 1 -e "$pattern" | cut -b 1-1100 | awk -v base="$1" -v most="$2" "$choose"
    case ${PIPESTATUS[1]} in 0 | 1) ;; *) echo X ;; esac
  }
  # What was read in time is searched. $@: the reader.
  read_part() {
    timeout -k 1 3 "$@" || echo X >&3
  }
  for ((log = 0; log < ${#paths[@]}; log++)); do
    path=${paths[log]}
    if ((SECONDS >= 8)); then
      printf "L %s\nX\n" "${names[log]}"
      continue
    fi
    size=$(stat -L -c %s -- "$path") || continue
    echo "L ${names[log]}"
    # The end tells most, so it is searched first.
    tail=$((part / 8))
    if ((size <= tail)); then
      read_part cat -- "$path" | search 0 "$most"
    else
      read_part tail -c "+$((size - tail + 1))" -- "$path" | search "$((size - tail))" "$((most / 2))"
      if ((size - tail <= part)); then part_of_it=$((size - tail)); else part_of_it=$part; fi
      read_part head -c "$part_of_it" -- "$path" | search 0 "$((most / 2))"
      if ((size - tail > part)); then echo G; fi
    fi
  done >"$found" 3>&1'

searched=()
# $1: index, the rest: as for find_errors from its sixth argument on.
want_errors() {
  printf '%s\0' "$@" >"$tmp/errors.$1" || lost
  searched+=("$1")
}

# Searches for all jobs, a few at a time and for a while: what is not found then is not found.
search_for_errors() {
  local begun=$SECONDS index argument
  local -a arguments running=()
  mkdir -p -- "$tmp/tails" || lost
  for index in ${searched[@]+"${searched[@]}"}; do
    if ((SECONDS - begun >= 25)); then break; fi
    arguments=()
    while IFS= read -r -d '' argument; do arguments+=("$argument"); done <"$tmp/errors.$index"
    timeout -k 1 18 nice bash -c "$find_errors" find_errors "$tmp/tails/$index.errors" "$error_pattern" "$choose_lines" \
      "$error_bytes" "$error_read" "${arguments[@]:1}" >/dev/null 2>&1 </dev/null &
    running+=("$!")
    if ((${#running[@]} == 4)); then
      wait "${running[0]}"
      running=("${running[@]:1}")
    fi
  done
  wait
}
