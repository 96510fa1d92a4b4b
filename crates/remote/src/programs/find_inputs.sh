# shellcheck shell=bash
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
