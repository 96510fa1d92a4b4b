# shellcheck shell=bash
# One find searches the directories of many jobs, and reports those that it could not search completely.

# Prefix of each command: removes links from the directories in "$@" and reports them on descriptor 3. Parent directories
# may be links, but a job that replaced its own directory by a link could redirect the search.
# shellcheck disable=SC2016
no_links='
  real=()
  for dir; do
    if [ -L "$dir" ]; then printf "%s\n" "$dir" >&3 || exit 1; else real+=("$dir"); fi
  done
  if ((${#real[@]} == 0)); then exit 0; fi
  set -- "${real[@]}"
'

# Stores the output of a command, which is killed after 32 MiB.
# shellcheck disable=SC2016
keeper="ulimit -S -f 32768 2>/dev/null
$(declare -f keep)"'
keep "$@"'

# At most 2000 lines of each job.
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

# Writes the output of find to $tmp/found, and the indices of jobs with an incomplete search to $tmp/unsearched.
# $1: file of lines "index TAB directory ...", $2: seconds, $3: a bash command that passes "$@" to find.
search() {
  : >"$tmp/unsearched" || lost
  : >"$tmp/found" || lost
  if empty "$1"; then return; fi
  cut -f2 -- "$1" | tr '\n' '\0' \
    | timeout -k 5 "$2" bash -c "$keeper" keep xargs -0 -r bash -c "$no_links$3" find \
      >"$tmp/found" 2>"$tmp/found.err" 3>"$tmp/links"
  case $? in
    0) ;;
    74) lost ;;
    # xargs returns this if a find has failed.
    123) blame "$1" ;;
    # One directory may hang or be endless: then each is searched alone, in random order, so that no job is always
    # last.
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

# Adds the jobs whose directories caused an error of find to $tmp/unsearched. A missing directory is empty, and a directory
# that a job made unreadable inside its own stays so: a retry would not help for either. An error without one of our
# directories may concern all of them. $1: as above.
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

# One process works on the files of many jobs. If a hanging file system blocks it, it is killed, and another goes on after that job.

# shellcheck disable=SC2016
reader='
  newline=$(printf "\nx") newline=${newline%x}
  while IFS=$(printf "\t") read -r index dir after most; do
    for name; do
      file=$dir${name:+/$name}
      # Anything but a regular file, a pipe for instance, could block the read.
      if [ -f "$file" ] && { [ "${after:--}" = - ] || [ "$file" -nt "$after" ]; }; then
        text=
        # Ends at a NUL: bash would skip NULs without counting them, endlessly in a sparse file.
        IFS= read -r -d "" -n "${most:-400}" text <"$file"
        if [ -z "$name" ]; then line=${text//"$newline"/ }; else line=${text%%"$newline"*}; fi
        if [ -z "$text" ] && [ -s "$file" ]; then
          tell "UNREAD $index"
        # A saved id counts only with its newline: without one it may be incomplete.
        elif [ "$name" != slurm_id ] || [ "$line" != "$text" ]; then
          tell "LINE $index $name $line"
        fi
      fi
    done
    tell THROUGH
  done'

# Writes a line "index name text" to $tmp/lines for the first line of each existing file, and adds the indices of jobs with
# an unreadable file to $tmp/unread. $1: file of lines "index TAB directory", the rest: names of files. With an empty name each line has the
# path of a file, whose lines are joined. After a tab there may be the path of another file: an older one does not count (else "-"); and
# after another one how many bytes are read of it (400).
read_each() { walk "$reader" "$@"; }

# Prefix of each program.
# shellcheck disable=SC2016
teller='tell() { printf "%s\n" "$1" || exit 74; }
'

# Feeds the lines of a file, one for each job, to a program. It prints "LINE text" for $tmp/lines, "UNREAD index" for
# $tmp/unread, and "THROUGH" after each job. $1: the program, $2: the file, the rest: its arguments.
walk() { walk_for 30 "$tmp/unread" "$@"; }

# The same. $1: about how many seconds, $2: the file for indices instead of $tmp/unread, the rest: as above.
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
    # Incomplete results of a job are dropped; the next reader repeats it.
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
    # A job that used the whole time and was not read is skipped.
    if ((through == 0)); then
      head -n 1 -- "$tmp/ahead" | cut -f1 >>"$unread" || lost
      through=1
    fi
    tail -n "+$((through + 1))" -- "$tmp/ahead" >"$tmp/behind" || lost
    mv -f -- "$tmp/behind" "$tmp/ahead" || lost
  done
}

# The markers that a batch script writes to its state directory. One find and one reader for all jobs.

# Prints the markers, and adds the indices of jobs with unreadable markers to $tmp/unread.
# $1: file of lines "index TAB state directory".
say_markers() {
  if empty "$1"; then return; fi
  say_claims "$1"
  read_each "$1" exit started requeued warned limited self_canceled
  sed 's/^/MARK /' "$tmp/lines" >"$tmp/marks" || lost
  say_file "$tmp/marks"
}

# Prints the Slurm jobs that hold the attempts. $1: as above.
say_claims() {
  # A claim is a symbolic link whose target is the job's id: readlink would be a fork per job.
  search "$1" 30 'exec find "$@" -maxdepth 1 -name run -type l ! -lname "*[!0-9]*" -printf "%h\t%l\n"'
  cat -- "$tmp/unsearched" >>"$tmp/unread" || lost
  awk -F'\t' 'pass == 1 { claim[$1] = $2; next } $2 in claim { print "CLAIM " $1 " " claim[$2] }' \
    pass=1 "$tmp/found" pass=2 "$1" >"$tmp/claimed" || lost
  say_file "$tmp/claimed"
}
