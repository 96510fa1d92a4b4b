# shellcheck shell=bash
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
