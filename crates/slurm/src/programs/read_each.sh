# shellcheck shell=bash
# Small work on the files of many jobs. What hangs can be ended only together with its process, so one process works for
# all jobs, and another goes on behind the job that held it up.

# shellcheck disable=SC2016
reader='
  while IFS=$(printf "\t") read -r index dir; do
    for name; do
      # Anything but a plain file, a pipe for instance, could block the read.
      if [ -f "$dir/$name" ]; then
        line=
        if ! IFS= read -r -n 400 line <"$dir/$name" && [ -z "$line" ] && [ -s "$dir/$name" ]; then
          printf "UNREAD %s\n" "$index"
        else
          printf "LINE %s\n" "$index $name $line"
        fi
      fi
    done
    printf "THROUGH\n"
  done'

# Puts a line "index name text" into $tmp/lines for the first line of each file that is there, and adds to $tmp/unread the
# indices of jobs that have one which could not be read. $1: file of lines "index TAB directory", the rest: names of files.
read_each() { walk "$reader" "$@"; }

# Gives a program the lines of a file, one for each job. It says "LINE text" for what is to be put into $tmp/lines,
# "UNREAD index" for what is to be added to $tmp/unread, and "THROUGH" after each job. $1: the program, $2: the file, the
# rest: its arguments.
walk() {
  local whole through begun=$SECONDS program=$1
  cat -- "$2" >"$tmp/ahead"
  shift 2
  : >"$tmp/lines"
  while [ -s "$tmp/ahead" ]; do
    if ((SECONDS - begun >= 30)); then
      cut -f1 -- "$tmp/ahead" >>"$tmp/unread"
      return
    fi
    timeout -k 1 5 bash -c "$program" walk "$@" <"$tmp/ahead" >"$tmp/told" 2>/dev/null
    whole=$?
    # What was read of a job that was not read to its end is left to the next reader.
    through=$(awk -v tmp="$tmp" '
      /^LINE / { lines = lines substr($0, 6) "\n"; next }
      /^UNREAD / { unread = unread $2 "\n"; next }
      {
        printf "%s", lines >>(tmp "/lines")
        printf "%s", unread >>(tmp "/unread")
        lines = unread = ""
        through++
      }
      END { print through + 0 }' "$tmp/told")
    if ((whole == 0)); then return; fi
    # One that was given all the time there is, and was not read, will not be.
    if ((through == 0)); then
      head -n 1 -- "$tmp/ahead" | cut -f1 >>"$tmp/unread"
      through=1
    fi
    tail -n "+$((through + 1))" -- "$tmp/ahead" >"$tmp/behind"
    mv -f -- "$tmp/behind" "$tmp/ahead"
  done
}
