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

# Makes the directories of many entries with a few processes for all of them.
#
# Filled in by the caller: directories of all entries, and of some; of each entry those of the latter that are its own, by their
# places in the list ("0 2"; "-" for none), its results directory or "-", and its state directory.
shared_dirs=() dirs=() dirs_of=() results=() state=()
# Set for an entry that lacks a directory, or a file.
broken=()

# Makes the directories of the entries of the wave, which are those from $begin to before $end, that have no answer yet.
make_dirs() {
  local -a wanted=() made=() fresh=()
  local i place places=''
  for ((i = begin; i < end; i++)); do
    if [ -n "${answer[i]}" ]; then continue; fi
    wanted+=("$i") places+=" ${dirs_of[i]}"
    if [ "${results[i]}" != - ] && [ ! -e "${results[i]}" ]; then fresh[i]="${state[i]}/${results[i]##*/}"; fi
  done
  if ((${#wanted[@]} == 0)); then return; fi
  made=(${shared_dirs[@]+"${shared_dirs[@]}"})
  for place in ${places//-/}; do made+=("${dirs[place]}"); done
  made+=(${fresh[@]+"${fresh[@]}"})
  if ! for_all made mkdir -p --; then
    for i in "${wanted[@]}"; do look_for_dirs "$i"; done
  fi
  place_results
  for i in "${!fresh[@]}"; do
    if [ ! -d "${results[i]}" ]; then broken[i]=1; fi
  done
}

# Keeps in mind that an entry lacks a directory. $1: index.
look_for_dirs() {
  local place dir
  for dir in ${shared_dirs[@]+"${shared_dirs[@]}"}; do
    if [ ! -d "$dir" ]; then broken[$1]=1; fi
  done
  for place in ${dirs_of[$1]//-/}; do
    if [ ! -d "${dirs[place]}" ]; then broken[$1]=1; fi
  done
}

# Puts fresh results directories into their places, each with a mark inside that says whose it is. It is marked before it
# is moved, and nothing is moved over what is there: so a directory that was not made here never bears a mark.
place_results() {
  # shellcheck disable=SC2034 # for_all is given its name
  local -a marked=()
  local -A to_parent=()
  local i parent
  for i in "${!fresh[@]}"; do
    if printf '%s\n%s\n' "${results[i]##*/}" 'Made by tao-slurm, which may remove this directory when the job is deleted.' \
      >"${fresh[i]}/.tao-slurm"; then
      to_parent[${results[i]%/*}]+="$i "
    fi
  done
  for parent in "${!to_parent[@]}"; do
    marked=()
    for i in ${to_parent[$parent]}; do marked+=("${fresh[i]}"); done
    for_all marked mv -n -t "$parent" --
  done
}

# Looks for what jobs need to be there before anything of them is staged.
#
# Filled in by the caller: the paths, whose they are, and which in the order of its owner. And for each entry its base
# directory: while that cannot be read, nothing can be said to be missing.
need=() need_entry=() need_place=() base=()

# Why a path is not there, once it is known: empty if it is missing, else what keeps us from knowing.
declare -A hindrance=()

# Finds out why a path was not found. $1: path. Returns 0 if it is there after all.
examine_path() {
  local said code parent=$1
  said=$(timeout -k 1 5 stat -L -- "$1" 2>&1 >/dev/null </dev/null)
  code=$?
  if ((code == 0)); then return 0; fi
  # Nothing above it is looked at either: that could give no answer too, and nobody would end it.
  if ((code == 124 || code == 137)); then
    hindrance[$1]="$1: no answer within 5 s"
    return 1
  fi
  hindrance[$1]=
  case $said in
    # What its owner has to mend. Of the rest nobody knows for how long it lasts.
    *': No such file or directory' | *': Not a directory' | *': Permission denied' | *': File name too long' \
      | *': Too many levels of symbolic links') ;;
    *) hindrance[$1]=${said:-"$1: stat returned $code"} ;;
  esac
  while parent=${parent%/*} && [ -n "$parent" ] && [ ! -e "$parent" ]; do :; done
  # An empty directory at the top is the place of a file system that is not mounted.
  case $parent in
    '' | /*/*) ;;
    *)
      if [ -d "$parent" ] && [ -r "$parent" ] && [ -z "$(find "$parent" -mindepth 1 -maxdepth 1 -print -quit </dev/null)" ]; then
        hindrance[$1]="$parent is empty: is its file system mounted on this host?"
      fi
      ;;
  esac
  return 1
}

# Whether the base directory of an entry can be used. If this is the first job below it, something is put there, so
# that it can be told from a file system that is not mounted. $1: index.
has_base() { { mkdir -p -- "${base[$1]}/state" && [ -r "${base[$1]}" ] && [ -x "${base[$1]}" ]; } 2>/dev/null; }

# Answers the entries whose inputs are not all there. $1: name of the array of answers: an entry that has one is left
# alone. Uses settle, which the caller defines.
find_inputs() {
  local -n answered=$1
  # shellcheck disable=SC2034 # for_all is given the names
  local -a wanted=() parents=()
  local -A there=() looked=() absent=() obstacle=() unasked=()
  local i path entry begun
  for i in "${!need[@]}"; do
    if [ -z "${answered[need_entry[i]]}" ]; then wanted+=("${need[i]}") parents+=("${need[i]%/*}/"); fi
  done
  if ((${#wanted[@]} == 0)); then return; fi
  # Opened, a directory of NFS is asked of its server, so that what was made elsewhere just now is seen.
  # shellcheck disable=SC2016 # expanded by the bash that it is given to
  for_all parents timeout -k 1 10 bash -c 'for dir; do : <"$dir"; done' open 2>/dev/null
  while IFS= read -r -d '' path; do there[$path]=1; done \
    < <(for_all wanted timeout -k 1 20 stat -L --printf='%n\0' -- 2>/dev/null)
  begun=$SECONDS
  for i in "${!need[@]}"; do
    entry=${need_entry[i]} path=${need[i]}
    if [ -n "${answered[entry]}" ] || [ -n "${there[$path]-}" ]; then continue; fi
    if [ -z "${hindrance[$path]+x}" ]; then
      # A process each: of very many the first ones tell what is wrong with all of them.
      if ((${#looked[@]} >= 64)); then
        hindrance[$path]=
      # Each that gives no answer takes 5 s, and the others wait.
      elif ((SECONDS - begun >= 15)); then
        unasked[$entry]=1
        continue
      else
        looked[$path]=1
        if examine_path "$path"; then
          there[$path]=1
          continue
        fi
      fi
    fi
    if [ -n "${hindrance[$path]}" ]; then
      obstacle[$entry]=${hindrance[$path]}
    else
      absent[$entry]+="${absent[$entry]+,}${need_place[i]}"
    fi
  done
  for entry in "${!unasked[@]}"; do
    # What it lacks is said when all of it was looked for.
    unset "absent[$entry]"
    if [ -z "${obstacle[$entry]-}" ]; then settle "$entry" "SKIPPED $entry"; fi
  done
  for entry in "${!absent[@]}"; do
    if ! has_base "$entry"; then obstacle[$entry]="${base[entry]} cannot be read"; fi
  done
  for entry in "${!obstacle[@]}"; do
    settle "$entry" "UNREADABLE $entry $(printf '%s' "${obstacle[$entry]}" | head -c 2000 | base64 -w0)"
    unset "absent[$entry]"
  done
  for entry in "${!absent[@]}"; do settle "$entry" "MISSING $entry ${absent[$entry]}"; done
}
