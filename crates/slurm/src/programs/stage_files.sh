# shellcheck shell=bash
# Puts the files of many entries into their places, with a few processes for all of them: a process for each file
# would take longer than sbatch does.
#
# Filled in by the caller, in the order in which the files arrive: whose they are, how many bytes they are on stdin,
# how many on disk, which mode, which path. Backslashes and NULs are written as printf's %b reads them.
file_entry=() file_length=() file_size=() file_mode=() file_path=()
# The directories that files are written into before they are moved. The caller removes them if it is ended early.
stages=()

# Gives a command a list of words, 200 at a time: as many of the longest paths are far below what a command can be given.
# Returns what the last failure returned. $1: name of the array, the rest: the command.
for_all() {
  local -n words=$1
  local i code=0
  shift
  for ((i = 0; i < ${#words[@]}; i += 200)); do
    # Not our stdin: the files come by it.
    "$@" "${words[@]:i:200}" </dev/null || code=$?
  done
  return "$code"
}

# Removes what a program that was killed has left beside the files, in the middle of staging and a day ago or earlier.
# $1: name of an array of directories.
remove_abandoned() {
  local -n places=$1
  if ((${#places[@]} == 0)); then return 0; fi
  # A few at a time and not for long: the next call goes on.
  printf '%s\0' "${places[@]}" \
    | timeout -k 1 4 xargs -0 bash -c 'exec find "$@" -maxdepth 1 -name ".stage.*" -type d -mmin +1440 -print0' find \
    | head -z -n 200 | timeout -k 1 4 xargs -0 -r rm -rf --
} 2>/dev/null

# Reads the files from stdin, writes those whose entry is still wanted beside their places, and moves them there. What is
# new in a directory that is its entry's alone is written in its place: nobody looks there before the entry is submitted,
# and each directory more would cost as much as half an sbatch.
# $1: name of an array of answers: an entry that has one is not wanted. $2: name of an array of the directories that belong
# to one entry each. What went wrong is said on stderr, and broken[entry] is set.
stage_files() {
  local -n settled=$1 own=$2
  # shellcheck disable=SC2034 # parents: remove_abandoned is given its name
  local -a temporary=() written=() in_place=() parents=() modes=()
  local -A size_of=() parent_seen=() to_mode=() to_parent=()
  local i entry path data size mode parent mask place
  # Two login nodes may run a process of the same number, but the end of mktemp's name is random.
  place=".stage.${tmp##*.}"
  mask=$(umask)
  umask 077
  for i in "${!file_path[@]}"; do
    path=${file_path[i]}
    parent=${path%/*}
    if [[ $path == "${own[file_entry[i]]}"/* && ! -e $path && ! -L $path ]]; then
      temporary[i]=$path
      continue
    fi
    temporary[i]="$parent/$place/${path##*/}"
    if [ -z "${settled[file_entry[i]]}" ] && [ -z "${parent_seen[$parent]+x}" ]; then
      parent_seen[$parent]=1
      parents+=("$parent/")
      stages+=("$parent/$place")
    fi
  done
  remove_abandoned parents
  for_all stages mkdir --
  for i in "${!file_path[@]}"; do
    entry=${file_entry[i]}
    data=
    if ((file_length[i] > 0)); then
      IFS= read -r -N "${file_length[i]}" data || give_up 'the files did not arrive whole'
    fi
    if [ -n "${settled[entry]}" ] || [ -n "${broken[entry]}" ]; then continue; fi
    if printf '%b' "$data" >"${temporary[i]}"; then
      written+=("${temporary[i]}")
      if [ "${file_mode[i]}" != 600 ]; then to_mode[${file_mode[i]}]+="$i "; fi
      if [ "${temporary[i]}" = "${file_path[i]}" ]; then in_place+=("$i"); else to_parent[${file_path[i]%/*}]+="$i "; fi
    else
      broken[entry]=1
    fi
  done
  umask "$mask"

  # A full disk may show only in the size.
  for_all written stat -c '%s %n' -- >"$tmp/sizes"
  while read -r size path; do size_of[$path]=$size; done <"$tmp/sizes"
  for mode in "${!to_mode[@]}"; do
    modes=()
    for i in ${to_mode[$mode]}; do modes+=("${temporary[i]}"); done
    if ! for_all modes chmod "$mode" --; then
      for i in ${to_mode[$mode]}; do broken[file_entry[i]]=1; done
    fi
  done
  # $1: index of a file.
  is_whole() {
    local of=${file_entry[$1]}
    if [ "${size_of[${temporary[$1]}]-}" = "${file_size[$1]}" ]; then return 0; fi
    echo "${file_path[$1]}: not all bytes were written" >&2
    broken[of]=1
    return 1
  }
  for i in ${in_place[@]+"${in_place[@]}"}; do is_whole "$i"; done
  for parent in "${!to_parent[@]}"; do
    written=()
    for i in ${to_parent[$parent]}; do
      if is_whole "$i"; then written+=("${temporary[i]}"); fi
    done
    for_all written mv -f -t "$parent" --
    for i in ${to_parent[$parent]}; do
      # It is gone from there only if it was moved.
      if [ -e "${temporary[i]}" ]; then broken[file_entry[i]]=1; fi
    done
  done
  for_all stages rm -rf --
  stages=()
}
