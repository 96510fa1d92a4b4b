# shellcheck shell=bash
# One find for the directories of many jobs. It also says whose directories it could not search to the end, because
# silence about those means nothing.

# Puts what find prints into $tmp/found, and into $tmp/unsearched the indices of the jobs it did not get through.
# $1: file of lines "index TAB directory ...", $2: seconds, $3: a command of bash that gives "$@" to find.
search() {
  cut -f2 -- "$1" | tr '\n' '\0' | timeout -k 5 "$2" xargs -0 -r bash -c "$3" find >"$tmp/found" 2>"$tmp/found.err"
  case $? in
    0) : >"$tmp/unsearched" ;;
    # xargs says so when a find has complained. What is not there has nothing in it, and what a job has locked away
    # inside its own directory stays locked: neither would be different the next time. A complaint that is about no
    # directory of ours may be about all of them.
    123)
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
        }' pass=1 "$1" pass=2 "$tmp/found.err" >"$tmp/unsearched"
      ;;
    *) cut -f1 -- "$1" >"$tmp/unsearched" ;;
  esac
}
