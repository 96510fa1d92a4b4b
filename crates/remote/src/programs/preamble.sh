# shellcheck shell=bash
# The start of every program. Written for bash 4.3 and GNU coreutils.
set -u
# A site may set these: they change what bash, awk, grep and coreutils do.
set +o posix
unset POSIXLY_CORRECT GREP_OPTIONS
export LC_ALL=C TZ=UTC SLURM_TIME_FORMAT=%s
# Slurm's commands read options from these variables, which override a batch script (sbatch(1)).
unset "${!SBATCH_@}" "${!SQUEUE_@}" "${!SACCT_@}" "${!SCANCEL_@}"

lines=0
# Prints one line of the answer.
say() {
  printf '%s\n' "$1"
  lines=$((lines + 1))
}

# The end of a file in base64, "-" for an empty one. $1: file, $2: the most bytes.
encoded_tail() {
  if [ -s "$1" ]; then tail -c "$2" -- "$1" | base64 -w0; else printf -- -; fi
}

# Whether the stderr of a Slurm command reports a failure: some commands fail and return 0. Other text is a greeting or a
# warning. $1: file.
complains() { grep -q -i -e error -e 'unable to' -- "$1"; }

finish() {
  printf 'END %s\n' "$lines"
  exit 0
}

give_up() {
  say "FAIL $(printf '%s' "$1" | base64 -w0)"
  finish
}

# Gives up because $tmp is full. Each write of a list is followed by this at once, because an incomplete list would be read
# as absence, and there may be room again later. Waits for background writers, so that $tmp can be removed.
lost() {
  wait
  give_up "${tmp%/*}: No space left on device"
}

# Whether a list is there and empty.
empty() { [ -f "$1" ] && [ ! -s "$1" ]; }

# Prints a file of lines as part of the answer.
say_file() {
  local count
  if empty "$1"; then return; fi
  count=$(wc -l <"$1") || lost
  cat -- "$1"
  lines=$((lines + count))
}

# Reads stdin, which must be a number of lines, into a file. $1: file, $2: how many lines, $3: what they are.
take_lines() {
  cat >"$1" || lost
  if [ "$(wc -l <"$1")" != "$2" ]; then give_up "the list of $3 did not arrive whole"; fi
}

# Runs a command and returns its exit code, or 74 if its output could not be stored: Slurm's commands do not check that.
# $@: the command.
keep() {
  {
    "$@" 2>&1 >&9 9>&- | cat >&2 9>&-
    # At the limit of a file's size the writer gets a signal.
    set -- "${PIPESTATUS[@]}"
    if (($2)); then exit "$(($2 > 128 ? $2 : 74))"; fi
    exit "$1"
  } 9>&1 | cat
  set -- "${PIPESTATUS[@]}"
  if (($2)); then return "$(($2 > 128 ? $2 : 74))"; fi
  return "$1"
}

# The same with a time limit. $1: seconds, the rest: the command. Returns 124 or 137 after the limit.
keep_for() {
  # A process that does not die, or that a wrapper left behind, may hold the output open. It is not waited for either.
  timeout -k 2 "$(($1 + 6))" bash -c "$(declare -f keep)"'
keep timeout -k 5 "$@"' keep "$@"
}

if ! tmp=$(mktemp -d "${TMPDIR:-/tmp}/slurm-call.XXXXXXXX" 2>&1 </dev/null); then
  give_up "$tmp"
fi
trap 'rm -rf -- "$tmp"' EXIT
