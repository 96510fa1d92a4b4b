# shellcheck shell=bash
# Searches and reads the state directories of many jobs.

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

# Small work on the files of many jobs. What hangs can be ended only together with its process, so one process works for
# all jobs, and another goes on behind the job that held it up.

# shellcheck disable=SC2016
reader='
  newline=$(printf "\nx") newline=${newline%x}
  while IFS=$(printf "\t") read -r index dir; do
    for name; do
      # Anything but a plain file, a pipe for instance, could block the read.
      if [ -f "$dir/$name" ]; then
        text=
        # A NUL ends it. Else bash would pass over them, without counting, for as long as a sparse file has any.
        IFS= read -r -d "" -n 400 text <"$dir/$name"
        line=${text%%"$newline"*}
        if [ -z "$text" ] && [ -s "$dir/$name" ]; then
          tell "UNREAD $index"
        # An id that is kept counts only with its newline: without it, it may be a part of one.
        elif [ "$name" != slurm_id ] || [ "$line" != "$text" ]; then
          tell "LINE $index $name $line"
        fi
      fi
    done
    tell THROUGH
  done'

# Puts a line "index name text" into $tmp/lines for the first line of each file that is there, and adds to $tmp/unread the
# indices of jobs that have one which could not be read. $1: file of lines "index TAB directory", the rest: names of files.
read_each() { walk "$reader" "$@"; }

# Comes before each program.
# shellcheck disable=SC2016
teller='tell() { printf "%s\n" "$1" || exit 74; }
'

# Gives a program the lines of a file, one for each job. It tells "LINE text" for what is to be put into $tmp/lines,
# "UNREAD index" for what is to be added to $tmp/unread, and "THROUGH" after each job. $1: the program, $2: the file, the
# rest: its arguments.
walk() { walk_for 30 "$tmp/unread" "$@"; }

# The same. $1: for about so many seconds, $2: what to put indices into instead of $tmp/unread, the rest: as above.
walk_for() {
  local whole through begun=$SECONDS patience=$1 unread=$2 program=$3
  cat -- "$4" >"$tmp/ahead" || lost
  shift 4
  : >"$tmp/lines" || lost
  while [ -s "$tmp/ahead" ]; do
    if ((SECONDS - begun >= patience)); then
      cut -f1 -- "$tmp/ahead" >>"$unread" || lost
      return
    fi
    timeout -k 1 5 bash -c "$teller$program" walk "$@" <"$tmp/ahead" >"$tmp/told" 2>/dev/null
    whole=$?
    if ((whole == 74)); then lost; fi
    # What was read of a job that was not read to its end is left to the next reader.
    through=$(awk -v tmp="$tmp" -v unread_to="$unread" '
      /^LINE / { lines = lines substr($0, 6) "\n"; next }
      /^UNREAD / { unread = unread $2 "\n"; next }
      {
        printf "%s", lines >>(tmp "/lines")
        printf "%s", unread >>unread_to
        lines = unread = ""
        through++
      }
      END { print through + 0 }' "$tmp/told") || lost
    if ((whole == 0)); then return; fi
    # One that was given all the time there is, and was not read, will not be.
    if ((through == 0)); then
      head -n 1 -- "$tmp/ahead" | cut -f1 >>"$unread" || lost
      through=1
    fi
    tail -n "+$((through + 1))" -- "$tmp/ahead" >"$tmp/behind" || lost
    mv -f -- "$tmp/behind" "$tmp/ahead" || lost
  done
}

# The marks that a batch script leaves in its state directory. One find and one reader for all jobs.

# Prints what the marks say, and adds to $tmp/unread the indices of jobs whose marks could not be read.
# $1: file of lines "index TAB state directory".
say_markers() {
  say_claims "$1"
  read_each "$1" exit started requeued warned limited self_canceled
  sed 's/^/MARK /' "$tmp/lines" >"$tmp/marks" || lost
  say_file "$tmp/marks"
}

# Prints which jobs hold the attempts. $1: as above.
say_claims() {
  # A claim is a symbolic link whose target is the job's id: readlink would be a fork per job.
  search "$1" 30 'exec find "$@" -maxdepth 1 -name run -type l ! -lname "*[!0-9]*" -printf "%h\t%l\n"'
  cat -- "$tmp/unsearched" >>"$tmp/unread" || lost
  awk -F'\t' 'pass == 1 { claim[$1] = $2; next } $2 in claim { print "CLAIM " $1 " " claim[$2] }' \
    pass=1 "$tmp/found" pass=2 "$1" >"$tmp/claimed" || lost
  say_file "$tmp/claimed"
}
