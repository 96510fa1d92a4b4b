# shellcheck shell=bash
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
