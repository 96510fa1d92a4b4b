# shellcheck shell=bash
# The marks that a batch script leaves in its state directory. Only builtins per job, and one find for all.

# Prints what the marks say. $1: file of lines "index TAB state directory".
say_markers() {
  local index dir line mark
  # A claim is a symbolic link whose target is the job's id: readlink would be a fork per job.
  cut -f2 -- "$1" | tr '\n' '\0' \
    | timeout -k 5 30 xargs -0 -r bash -c \
      'exec find "$@" -maxdepth 1 -name run -type l ! -lname "*[!0-9]*" -printf "%h\t%l\n"' find \
      >"$tmp/claims" 2>/dev/null
  awk -F'\t' 'NR == FNR { claim[$1] = $2; next } $2 in claim { print "CLAIM " $1 " " claim[$2] }' \
    "$tmp/claims" "$1" >"$tmp/claimed"
  say_file "$tmp/claimed"
  while IFS=$'\t' read -r index dir; do
    for mark in exit started; do
      # Anything but a plain file, a pipe for instance, could block the read.
      if [ -f "$dir/$mark" ]; then
        line=
        IFS= read -r -n 400 line 2>/dev/null <"$dir/$mark"
        say "MARK $index $mark $line"
      fi
    done
  done <"$1"
}
