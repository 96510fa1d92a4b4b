# shellcheck shell=bash
# What every program starts with. Written for bash 4.3 and GNU coreutils.
set -u
export LC_ALL=C TZ=UTC SLURM_TIME_FORMAT=%s
# Slurm's commands take options from these variables too, and there they beat what a batch script says (sbatch(1)).
unset "${!SBATCH_@}" "${!SQUEUE_@}" "${!SACCT_@}" "${!SCANCEL_@}"

lines=0
# Prints one line of the answer.
say() {
  printf '%s\n' "$1"
  lines=$((lines + 1))
}

# The end of a file in base64, "-" for an empty one. $1: file, $2: at most so many bytes.
encoded_tail() {
  if [ -s "$1" ]; then tail -c "$2" -- "$1" | base64 -w0; else printf -- -; fi
}

# Whether what a command of Slurm printed on stderr says that it failed: some do and return 0. Any other word is a
# site's greeting or a warning. $1: file.
complains() { grep -q -i -e error -e 'unable to' -- "$1"; }

finish() {
  printf 'END %s\n' "$lines"
  exit 0
}

give_up() {
  say "FAIL $(printf '%s' "$1" | base64 -w0)"
  finish
}

# What a list in $tmp lacks would be taken for what is not there. So whatever is written into one is followed by this, at
# once: by the end there may be room again. Waits for those who still write there, else $tmp could not be removed.
lost() {
  wait
  give_up "${tmp%/*}: No space left on device"
}

# Prints a file of lines as a part of the answer.
say_file() {
  local count
  count=$(wc -l <"$1") || lost
  cat -- "$1"
  lines=$((lines + count))
}

# Reads stdin, which must be a number of lines, into a file. $1: file, $2: how many lines, $3: what they are.
take_lines() {
  cat >"$1" || lost
  if [ "$(wc -l <"$1")" != "$2" ]; then give_up "the list of $3 did not arrive whole"; fi
}

# Runs a command and returns what it returns, or 74 if what it printed could not be kept: Slurm's commands do not look
# whether it was, and nobody looks whether a complaint was. $@: the command.
keep() {
  {
    "$@" 2>&1 >&9 9>&- | cat >&2 9>&-
    # It may have come to the limit of a file's size: that is a signal.
    set -- "${PIPESTATUS[@]}"
    if (($2)); then exit "$(($2 > 128 ? $2 : 74))"; fi
    exit "$1"
  } 9>&1 | cat
  set -- "${PIPESTATUS[@]}"
  if (($2)); then return "$(($2 > 128 ? $2 : 74))"; fi
  return "$1"
}

# The same, for at most so many seconds. $1: seconds, the rest: the command. Returns 124 where they are over, or 137.
keep_for() {
  # A process that does not die, or that a site's wrapper has left behind, may hold on to what the command was given to print to: it
  # is not waited for either.
  timeout -k 2 "$(($1 + 6))" bash -c "$(declare -f keep)"'
keep timeout -k 5 "$@"' keep "$@"
}

if ! tmp=$(mktemp -d "${TMPDIR:-/tmp}/slurm-call.XXXXXXXX" 2>&1 </dev/null); then
  give_up "$tmp"
fi
trap 'rm -rf -- "$tmp"' EXIT
