# shellcheck shell=bash
# Prints a file of lines as a part of the answer.
say_file() {
  local count
  count=$(wc -l <"$1") || lost
  cat -- "$1"
  lines=$((lines + count))
}
