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

# Ends an answer in which silence about a job says something: where there is no room, what was seen may not have been kept.
finish_if_whole() {
  if ! printf '%4096s' '' >"$tmp/room"; then give_up "${tmp%/*}: No space left on device"; fi 2>/dev/null
  finish
}

if ! tmp=$(mktemp -d "${TMPDIR:-/tmp}/slurm-call.XXXXXXXX" 2>&1 </dev/null); then
  give_up "$tmp"
fi
trap 'rm -rf -- "$tmp"' EXIT
