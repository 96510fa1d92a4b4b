# shellcheck shell=bash
# The last words of jobs that have ended; then their private files are removed.
#
# stdin: a line "number of jobs, bytes of a tail, bytes of a status file, bytes of all status files"; for each job a
# line "index, id, state directory, results directory, directory of role logs, known status files, candidates for out, for err, files to remove", a
# line "index, inode, offset, path" for each known status file and a line for each of the other paths.

IFS=$'\t' read -r count tail_bytes per_file altogether || give_up 'the list of jobs did not arrive whole'
: >"$tmp/states"
: >"$tmp/want"
: >"$tmp/known"
: >"$tmp/unread"

# Reads $2 candidates off stdin, and keeps the end of the first that exists in the file $1.
first_tail() {
  local i path done=0
  : >"$1"
  for ((i = 0; i < $2; i++)); do
    IFS= read -r path
    if ((!done)) && [ -f "$path" ]; then
      done=1
      if ! timeout -k 1 5 tail -c "$tail_bytes" -- "$path" >"$1" 2>/dev/null </dev/null; then unread "$index"; fi
    fi
  done
}

# Prints the ends of the logs of a job's roles, where it has any: of at most 32 tasks. $1: directory.
role_tails() {
  local log tasks=0
  if [ "$1" = - ]; then return; fi
  for log in "$1"/{controller,policy,rollout}/*.{out,err}; do
    if [ -f "$log" ] && ((tasks++ < 64)); then
      timeout -k 1 5 tail -c 4096 -- "$log" 2>/dev/null </dev/null
      echo
    fi
  done
}

# Keeps in mind that nothing follows from what is missing of a job. $1: its index.
unread() { printf '%s\n' "$1" >>"$tmp/unread"; }

# The state directory was made before the job was submitted: where there is none, the file system is not there.
check_states() {
  local index dir
  while IFS=$'\t' read -r index dir; do
    if [ ! -d "$dir" ]; then unread "$index"; fi
  done <"$tmp/states"
}

for ((job = 0; job < count; job++)); do
  IFS=$'\t' read -r index id state results roles knowns outs errs removes || give_up 'the list of jobs did not arrive whole'
  printf '%s\t%s\n' "$index" "$state" >>"$tmp/states"
  if [ ! -d "$state" ]; then unread "$index"; fi
  # Before anything is read: what starts from here on has not run. A link takes no room on a disk that is full.
  if [ "$id" != - ]; then ln -sfT -- "$id" "$state/over" 2>/dev/null; fi
  if [ "$results" != - ]; then
    printf '%s\t%s\t%s\n' "$index" "$results" "$state" >>"$tmp/want"
  fi
  for ((i = 0; i < knowns; i++)); do
    IFS= read -r path
    printf '%s\n' "$path" >>"$tmp/known"
  done
  first_tail "$tmp/out.$index" "$outs"
  first_tail "$tmp/err.$index" "$errs"
  role_tails "$roles" >"$tmp/role.$index"
  for ((i = 0; i < removes; i++)); do
    IFS= read -r path
    printf '%s\t%s\t%s\t%s\n' "$index" "$id" "$state" "$path" >>"$tmp/remove"
  done
done

say_markers "$tmp/states"
say_status_files "$tmp/want" "$tmp/known" "$per_file" "$altogether"
# Once more: it may have come and gone while the rest was read.
check_states
for ((index = 0; index < count; index++)); do
  say "TAIL $index $(encoded_tail "$tmp/out.$index" "$tail_bytes") $(encoded_tail "$tmp/err.$index" "$tail_bytes") \
$(encoded_tail "$tmp/role.$index" 131072)"
done
sort -n -u -- "$tmp/unread" | sed 's/^/UNREAD /' >"$tmp/said"
say_file "$tmp/said"

# Whether the attempt belongs to another job of Slurm than ours, or nobody can say: what ran as ours was a second copy
# then, and the first still needs its files. $1: id of ours, "-" if it has none, $2: state directory.
is_taken() {
  local owner code
  owner=$(timeout -k 1 5 readlink -- "$2/run" 2>/dev/null </dev/null)
  code=$?
  if ((code != 0)); then ((code != 1)); return; fi
  case $owner in
    "$1" | '' | 0* | *[!0-9]*) return 1 ;;
  esac
}

taken=0 last=
if [ -f "$tmp/remove" ]; then
  while IFS=$'\t' read -r index id state path; do
    # The rest is for the next call, before nobody waits for this one any more.
    if ((SECONDS >= 120)); then
      say "KEPT $index"
      continue
    fi
    if [ "$index" != "$last" ]; then
      last=$index taken=0
      if is_taken "$id" "$state"; then taken=1; fi
    fi
    if ((taken)) || ! remove_file "$path"; then say "KEPT $index"; fi
  done <"$tmp/remove"
fi
finish
