# shellcheck shell=bash
# Parts of many files. One process reads them and one encodes them, for those that each file would need of its own would
# take as long as everything else that is asked about its job.

# shellcheck disable=SC2016
part_reader='
  while IFS=$(printf "\t") read -r index place begin want path; do
    dd if="$path" of="$1/$place" bs=64K iflag=skip_bytes,count_bytes,fullblock skip="$begin" count="$want" status=none
    tell THROUGH
  done'

# Reads parts of files into $tmp/parts, each into a file that is called by its place; of what cannot be read there is none, or
# less than wanted. $1: file of lines "index TAB place TAB first byte TAB bytes wanted TAB path".
read_parts() {
  mkdir -p -- "$tmp/parts"
  walk "$part_reader" "$1" "$tmp/parts"
}

# Prints the lines "name bytes" of the files of a directory. $1: directory.
sizes() { find "$1" -type f -printf '%f %s\n'; }

# Prints files one after the other, as one line of base64. $1: the word that the line begins with, $2: their directory, the
# rest: their names.
say_bytes() {
  local directory=$2
  if (($# == 2)); then return; fi
  printf '%s ' "$1"
  shift 2
  printf '%s\0' "$@" | (cd "$directory" && xargs -0 cat --) | base64 -w0
  say ''
}
