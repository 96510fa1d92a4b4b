# shellcheck shell=bash
# Stages the files of many entries with a few processes for all of them: a process for each file would take longer than
# sbatch, and bash is nearly as slow with a text of some kilobytes.
#
# Set by the caller, for each file in the order of the entries: its entry, its size and mode ("12-644"), whether it is written in
# place, and its path.
file_entry=() file_look=() file_in_place=() file_path=()
# The next file to process.
next_file=0
# The temporary directories of files before they are moved. tar creates them, and the caller removes them at its end.
stages=()
# Their parents, for remove_abandoned.
visited=()

# Runs a command with a list of words, 200 at a time: so many of the longest paths fit easily into an argument list. Returns the
# code of the last failure. $1: name of the array, the rest: the command.
for_all() {
  local -n words=$1
  local i code=0
  shift
  for ((i = 0; i < ${#words[@]}; i += 200)); do
    # Not our stdin, which holds the files.
    "$@" "${words[@]:i:200}" </dev/null || code=$?
  done
  return "$code"
}

# Removes temporary directories that killed programs have left a day ago or earlier.
# $1: name of an array of directories.
remove_abandoned() {
  local -n places=$1
  if ((${#places[@]} == 0)); then return 0; fi
  # A few at a time and not for long: the next call continues.
  printf '%s\0' "${places[@]}" \
    | timeout -k 1 4 xargs -0 bash -c 'exec find "$@" -maxdepth 1 -name ".stage.*" -type d -mmin +1440 -print0' find \
    | head -z -n 200 | timeout -k 1 4 xargs -0 -r rm -rf --
} 2>/dev/null

# Reads an archive from stdin, extracts the files of entries without an answer, and moves them into place. A file in its entry's
# own directory is written in place: nothing reads it before the submission, and each temporary directory would cost as much
# as half an sbatch.
# $1: name of an array of answers: an entry with an answer is skipped. $2: length of the archive, which a line "whole" follows.
# The path of a file for a temporary directory has "%" before its last part, which no path of ours has. Reports errors on
# stderr and sets broken[entry]. Processes the files of entries up to $end, from $next_file on. Returns 1 if the archive is
# incomplete.
stage_files() {
  local -n settled=$1
  local -a needed=() members=() temporary=() written=() earlier=()
  local -A look_of=() to_parent=()
  local i path parent place mask look is_done=''
  # Two login nodes may run a process of the same number, but the end of mktemp's name is random.
  place=".stage.${tmp##*.}"
  for ((; next_file < ${#file_path[@]} && file_entry[next_file] < end; next_file++)); do
    i=$next_file path=${file_path[next_file]}
    if [ -n "${settled[file_entry[i]]}${broken[file_entry[i]]}" ]; then continue; fi
    needed+=("$i")
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
  # A file of an earlier submission could have the expected size and be mistaken for the new one. Readers of it keep it.
  for_all earlier rm -f --
  if ((${#earlier[@]})); then
    for i in "${needed[@]}"; do
      if ((file_in_place[i])) && { [ -e "${file_path[i]}" ] || [ -L "${file_path[i]}" ]; }; then
        broken[file_entry[i]]=1
      fi
    done
  fi
  mask=$(umask)
  umask 077
  unset TAR_OPTIONS
  if ((${#needed[@]} == 0)); then
    head -c "$2" >/dev/null
  else
    # -p: the modes of the archive. The names are not in a file, which could be cut off. The rest that tar does not read is
    # consumed, so that the next part is found.
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

  # tar does not report which files it could not write.
  for i in ${needed[@]+"${needed[@]}"}; do
    if [ -f "${temporary[i]}" ]; then written+=("${temporary[i]}"); fi
  done
  # Whatever tar returns, a missing file was not written.
  if [ -z "$is_done" ] || ((${#written[@]} < ${#needed[@]})); then
    for_all written stat -c '%s-%a %n' -- >"$tmp/looks"
    while read -r look path; do look_of[$path]=$look; done <"$tmp/looks"
    for i in ${needed[@]+"${needed[@]}"}; do
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
      # It is gone only if it was moved.
      if [ -e "${temporary[i]}" ]; then broken[file_entry[i]]=1; fi
    done
  done
  # Files that could not be moved may take the room that the rest needs. Otherwise the directories are empty and are removed later.
  if [ -z "$is_done" ]; then
    for_all stages rm -rf --
    stages=()
  fi
}

# Creates the directories of many entries with a few processes for all of them.
#
# Set by the caller: directories of all entries, and of some; for each entry, the places of its own directories in the latter
# list ("0 2"; "-" for none), its results directory, and its state directory.
shared_dirs=() dirs=() dirs_of=() results=() state=()
# Set for an entry that lacks a directory, or a file.
broken=()

# Creates the directories of the entries of the wave, from $begin to before $end, that have no answer yet.
make_dirs() {
  local -a needed=() made=() fresh=()
  local i place places=''
  for ((i = begin; i < end; i++)); do
    if [ -n "${answer[i]}" ]; then continue; fi
    needed+=("$i") places+=" ${dirs_of[i]}"
    if [ ! -e "${results[i]}" ]; then fresh[i]="${state[i]}/${results[i]##*/}"; fi
  done
  if ((${#needed[@]} == 0)); then return; fi
  made=(${shared_dirs[@]+"${shared_dirs[@]}"})
  for place in ${places//-/}; do made+=("${dirs[place]}"); done
  made+=(${fresh[@]+"${fresh[@]}"})
  if ! for_all made mkdir -p --; then
    for i in "${needed[@]}"; do look_for_dirs "$i"; done
  fi
  place_results
  for i in "${!fresh[@]}"; do
    if [ ! -d "${results[i]}" ]; then broken[i]=1; fi
  done
}

# Marks an entry that lacks a directory as broken. $1: index.
look_for_dirs() {
  local place dir
  for dir in ${shared_dirs[@]+"${shared_dirs[@]}"}; do
    if [ ! -d "$dir" ]; then broken[$1]=1; fi
  done
  for place in ${dirs_of[$1]//-/}; do
    if [ ! -d "${dirs[place]}" ]; then broken[$1]=1; fi
  done
}

# Moves new results directories into place, each with a marker file inside that names its job. The marker is written before the
# move, and nothing is moved over an existing directory, so a directory that was not created here never has a marker.
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

# Checks the inputs of jobs before anything is staged.
#
# Set by the caller, for each input: its path, its entry, and its place within the entry. And for each entry its base directory:
# while that is unreadable, no input counts as missing.
need=() need_entry=() need_place=() base=()

# Why a path was not found: empty if it is missing, else what prevents the check.
declare -A blocked=()

# Finds out why a path was not found. $1: path. Returns 0 if it exists after all.
examine_path() {
  local said code parent=$1
  said=$(timeout -k 1 5 stat -L -- "$1" 2>&1 >/dev/null </dev/null)
  code=$?
  if ((code == 0)); then return 0; fi
  # Its parents are not checked either: that could hang too, without a time limit.
  if ((code == 124 || code == 137)); then
    blocked[$1]="$1: no answer within 5 s"
    return 1
  fi
  blocked[$1]=
  case $said in
    # The owner of the job has to fix these. Other errors may be temporary.
    *': No such file or directory' | *': Not a directory' | *': Permission denied' | *': File name too long' \
      | *': Too many levels of symbolic links') ;;
    *) blocked[$1]=${said:-"$1: stat returned $code"} ;;
  esac
  while parent=${parent%/*} && [ -n "$parent" ] && [ ! -e "$parent" ]; do :; done
  # An empty top directory may be an unmounted mount point.
  case $parent in
    '' | /*/*) ;;
    *)
      if [ -d "$parent" ] && [ -r "$parent" ] && [ -z "$(find "$parent" -mindepth 1 -maxdepth 1 -print -quit </dev/null)" ]; then
        blocked[$1]="$parent is empty: is its file system mounted on this host?"
      fi
      ;;
  esac
  return 1
}

# Whether the base directory of an entry can be used. Creates a directory in it, so that it does not look like an unmounted
# mount point. $1: index.
has_base() { { mkdir -p -- "${base[$1]}/state" && [ -r "${base[$1]}" ] && [ -x "${base[$1]}" ]; } 2>/dev/null; }

# Answers the entries with missing inputs. $1: name of the array of answers: an entry with an answer is skipped. Uses settle,
# which the caller defines.
find_inputs() {
  local -n answered=$1
  # shellcheck disable=SC2034 # for_all is given the names
  local -a needed=() parents=()
  local -A there=() looked=() absent=() obstacle=() unasked=()
  local i path entry begun
  for i in "${!need[@]}"; do
    if [ -z "${answered[need_entry[i]]}" ]; then needed+=("${need[i]}") parents+=("${need[i]%/*}/"); fi
  done
  if ((${#needed[@]} == 0)); then return; fi
  # Opening a directory makes an NFS client ask the server, so that new files from elsewhere are visible.
  # shellcheck disable=SC2016 # expanded by the bash that it is given to
  for_all parents timeout -k 1 10 bash -c 'for dir; do : <"$dir"; done' open 2>/dev/null
  while IFS= read -r -d '' path; do there[$path]=1; done \
    < <(for_all needed timeout -k 1 20 stat -L --printf='%n\0' -- 2>/dev/null)
  begun=$SECONDS
  for i in "${!need[@]}"; do
    entry=${need_entry[i]} path=${need[i]}
    if [ -n "${answered[entry]}" ] || [ -n "${there[$path]-}" ]; then continue; fi
    if [ -z "${blocked[$path]+x}" ]; then
      # Each check is a process: of very many missing paths only the first are checked.
      if ((${#looked[@]} >= 64)); then
        blocked[$path]=
      # Each check that hangs takes 5 s, and the others wait.
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
    if [ -n "${blocked[$path]}" ]; then
      obstacle[$entry]=${blocked[$path]}
    else
      absent[$entry]+="${absent[$entry]+,}${need_place[i]}"
    fi
  done
  for entry in "${!unasked[@]}"; do
    # Missing inputs are reported only when all were checked.
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
