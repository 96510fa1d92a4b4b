# shellcheck shell=bash
# One find for the directories of many jobs. It also says whose directories it could not search to the end, because
# silence about those means nothing.

# Comes before each command: takes out of "$@" the directories that are links, and names them on descriptor 3. A site may
# have links above a job's directory; the directory itself was made as one, and a job that has put a link into its place
# could lead us anywhere.
# shellcheck disable=SC2016
no_links='
  real=()
  for dir; do
    if [ -L "$dir" ]; then printf "%s\n" "$dir" >&3 || exit 1; else real+=("$dir"); fi
  done
  if ((${#real[@]} == 0)); then exit 0; fi
  set -- "${real[@]}"
'

# Keeps what a command prints; what prints more than 32 MiB is ended.
# shellcheck disable=SC2016
keeper="ulimit -S -f 32768 2>/dev/null
$(declare -f keep)"'
keep "$@"'

# Of one job at most 2000 lines are wanted: what has more is not searched to its end.
# shellcheck disable=SC2016
searcher='
  while IFS=$(printf "\t") read -r index dir; do
    bash -c "$4" keep bash -c "$1" find "$dir" 2>>"$2" 3>>"$3" </dev/null \
      | awk "NR > 2000 { exit 3 } { print \"LINE \" \$0 }"
    case ${PIPESTATUS[*]} in
      "0 0" | "1 0") ;;
      74\ * | *\ [12]) exit 74 ;;
      *) tell "UNREAD $index" ;;
    esac
    tell THROUGH
  done'

# Puts what find prints into $tmp/found, and into $tmp/unsearched the indices of the jobs it did not get through.
# $1: file of lines "index TAB directory ...", $2: seconds, $3: a command of bash that gives "$@" to find.
search() {
  : >"$tmp/unsearched" || lost
  cut -f2 -- "$1" | tr '\n' '\0' \
    | timeout -k 5 "$2" bash -c "$keeper" keep xargs -0 -r bash -c "$no_links$3" find \
      >"$tmp/found" 2>"$tmp/found.err" 3>"$tmp/links"
  case $? in
    0) ;;
    74) lost ;;
    # xargs says so when a find has complained.
    123) blame "$1" ;;
    # It may be one directory that hangs or has no end: then each is searched for itself, in an order that leaves
    # nobody behind each time.
    *)
      : >"$tmp/found.err" || lost
      : >"$tmp/links" || lost
      cut -f1,2 -- "$1" | shuf >"$tmp/each" || lost
      walk_for 20 "$tmp/unsearched" "$searcher" "$tmp/each" "$no_links$3" "$tmp/found.err" "$tmp/links" "$keeper"
      mv -f -- "$tmp/lines" "$tmp/found" || lost
      blame "$1"
      ;;
  esac
  if [ -s "$tmp/links" ]; then
    awk -F'\t' 'pass == 1 { link[$0]; next } $2 in link { print $1 }' pass=1 "$tmp/links" pass=2 "$1" \
      >>"$tmp/unsearched" || lost
  fi
}

# Adds to $tmp/unsearched whose directories find has complained about. What is not there has nothing in it, and what a job
# has locked away inside its own directory stays locked: neither would be different the next time. A complaint that is
# about no directory of ours may be about all of them. $1: as above.
blame() {
  awk -F'\t' '
    pass == 1 { jobs[$2] = jobs[$2] " " $1; all = all " " $1; next }
    /: No such file or directory$/ { next }
    {
      dir = $0
      sub("^[^/]*", "", dir)
      sub("\047: [^\047]*$", "", dir)
      if (/: Permission denied$/ && !(dir in jobs)) next
      while (dir != "" && !(dir in jobs)) sub("/[^/]*$", "", dir)
      n = split(dir == "" ? all : jobs[dir], ids, " ")
      for (k = 1; k <= n; k++) print ids[k]
    }' pass=1 "$1" pass=2 "$tmp/found.err" >>"$tmp/unsearched" || lost
}
