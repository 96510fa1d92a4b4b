# shellcheck shell=bash
# The marks that a batch script leaves in its state directory. Only builtins per job, and one find for all.

# Prints what the marks say, and adds to $tmp/unread the indices of jobs whose marks could not be read.
# $1: file of lines "index TAB state directory".
say_markers() {
  local index dir line mark
  # A claim is a symbolic link whose target is the job's id: readlink would be a fork per job.
  search "$1" 30 'exec find "$@" -maxdepth 1 -name run -type l ! -lname "*[!0-9]*" -printf "%h\t%l\n"'
  cat -- "$tmp/unsearched" >>"$tmp/unread"
  awk -F'\t' 'pass == 1 { claim[$1] = $2; next } $2 in claim { print "CLAIM " $1 " " claim[$2] }' \
    pass=1 "$tmp/found" pass=2 "$1" >"$tmp/claimed"
  say_file "$tmp/claimed"
  while IFS=$'\t' read -r index dir; do
    for mark in exit started requeued warned limited self_cancelled; do
      # Anything but a plain file, a pipe for instance, could block the read.
      if [ -f "$dir/$mark" ]; then
        line=
        if ! IFS= read -r -n 400 line 2>/dev/null <"$dir/$mark" && [ -z "$line" ] && [ -s "$dir/$mark" ]; then
          printf '%s\n' "$index" >>"$tmp/unread"
        else
          say "MARK $index $mark $line"
        fi
      fi
    done
  done <"$1"
}
