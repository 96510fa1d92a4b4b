# shellcheck shell=bash
# Puts the files of many entries into their places, with a few processes for all of them: a process for each file would take
# longer than sbatch does, and bash takes nearly as long for a text of some kilobytes.
#
# Filled in by the caller: whose they are, in the order of the entries, how many bytes and which mode they have ("12-644"), whether
# they are written in their places, which path.
file_entry=() file_look=() file_in_place=() file_path=()
# The first file that was not looked at yet.
next_file=0
# The directories that files are written into before they are moved. tar makes them, and the caller removes them at its end.
stages=()
# Where they have been, for remove_abandoned.
visited=()

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
  # A few at a time and not for long: the next one goes on.
  printf '%s\0' "${places[@]}" \
    | timeout -k 1 4 xargs -0 bash -c 'exec find "$@" -maxdepth 1 -name ".stage.*" -type d -mmin +1440 -print0' find \
    | head -z -n 200 | timeout -k 1 4 xargs -0 -r rm -rf --
} 2>/dev/null

# Reads an archive from stdin, takes the files out of it whose entry is still wanted, and moves them into their places. What is
# in a directory that is its entry's alone is written in its place: nobody looks there before the entry is submitted, and each
# directory more would cost as much as half an sbatch.
# $1: name of an array of answers: an entry that has one is not wanted. $2: length of the archive, behind which is a line
# "whole". A file that is not written in its place has a "%" before the last part of its path there, which no path of ours has.
# What went wrong is said on stderr, and broken[entry] is set. Only files of entries up to $end are looked at, from
# $next_file on, which is left behind them. Returns 1 if the archive did not arrive whole.
stage_files() {
  local -n settled=$1
  local -a wanted=() members=() temporary=() written=() earlier=()
  local -A look_of=() to_parent=()
  local i path parent place mask look is_done=''
  # Two login nodes may run a process of the same number, but the end of mktemp's name is random.
  place=".stage.${tmp##*.}"
  for ((; next_file < ${#file_path[@]} && file_entry[next_file] < end; next_file++)); do
    i=$next_file path=${file_path[next_file]}
    if [ -n "${settled[file_entry[i]]}${broken[file_entry[i]]}" ]; then continue; fi
    wanted+=("$i")
    if ((file_in_place[i])); then
      if [ -e "$path" ] || [ -L "$path" ]; then earlier+=("$path"); fi
      temporary[i]=$path members+=("${path#/}")
      continue
    fi
    parent=${path%/*}
    temporary[i]="$parent/$place/${path##*/}" members+=("${parent#/}/%/${path##*/}")
    if [ -z "${to_parent[$parent]-}" ]; then visited+=("$parent/") stages+=("$parent/$place"); fi
    to_parent[$parent]+="$i "
  done
  # What an earlier send has left could be as large as what is to be written, and be taken for it. Whoever has it open keeps it.
  for_all earlier rm -f --
  if ((${#earlier[@]})); then
    for i in "${wanted[@]}"; do
      if ((file_in_place[i])) && { [ -e "${file_path[i]}" ] || [ -L "${file_path[i]}" ]; }; then
        broken[file_entry[i]]=1
      fi
    done
  fi
  mask=$(umask)
  umask 077
  unset TAR_OPTIONS
  if ((${#wanted[@]} == 0)); then
    head -c "$2" >/dev/null
  else
    # -p: modes are those of the archive. The names are in no file, which could be cut off. What tar does not read is read all the
    # same, so that what follows is found.
    head -c "$2" | {
      tar -x -f - -C / -p -m --no-same-owner --null -T <(printf '%s\0' "${members[@]}") --transform "s,/%/,/$place/," && exit
      set -- "$?"
      cat >/dev/null
      exit "$1"
    }
    if ((PIPESTATUS[1] == 0)); then is_done=1; fi
  fi
  umask "$mask"
  IFS= read -r path
  if [ "$path" != whole ]; then return 1; fi

  # tar does not say which of them it could not write, if it could not write all.
  for i in ${wanted[@]+"${wanted[@]}"}; do
    if [ -f "${temporary[i]}" ]; then written+=("${temporary[i]}"); fi
  done
  # Whatever it says, what is not there was not written.
  if [ -z "$is_done" ] || ((${#written[@]} < ${#wanted[@]})); then
    for_all written stat -c '%s-%a %n' -- >"$tmp/looks"
    while read -r look path; do look_of[$path]=$look; done <"$tmp/looks"
    for i in ${wanted[@]+"${wanted[@]}"}; do
      look=${look_of[${temporary[i]}]-}
      if [ -n "$is_done" ] && [ -n "$look" ] || [ "$look" = "${file_look[i]}" ]; then continue; fi
      echo "${file_path[i]}: not all bytes were written" >&2
      broken[file_entry[i]]=1
      temporary[i]=
    done
  fi
  for parent in "${!to_parent[@]}"; do
    written=()
    for i in ${to_parent[$parent]}; do
      if [ -n "${temporary[i]}" ]; then written+=("${temporary[i]}"); fi
    done
    if for_all written mv -f -t "$parent" --; then continue; fi
    for i in ${to_parent[$parent]}; do
      # It is gone from there only if it was moved.
      if [ -e "${temporary[i]}" ]; then broken[file_entry[i]]=1; fi
    done
  done
  # What could not be moved may take the room that the rest needs. Else they are empty, and can wait until nobody does.
  if [ -z "$is_done" ]; then
    for_all stages rm -rf --
    stages=()
  fi
}
