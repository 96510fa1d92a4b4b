# shellcheck shell=bash
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
