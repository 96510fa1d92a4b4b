# shellcheck shell=bash
# The status files of many jobs: one find for all of them, and a read only for those that changed.

# The most status files of a job, which may use a new name at each step.
status_files_per_job=16
# Bytes before the known offset that are read again: they show whether the file was rewritten.
status_overlap=512

# Prints the new parts, and adds the indices of jobs with incomplete results to $tmp/unread.
# $1: file of lines "index TAB results directory TAB state directory TAB most unread bytes of a file: of one that has more only
# the end is read", $2: file of lines "index TAB inode TAB offset TAB
# microseconds since 1970 TAB path" of the files that were read before, $3: the most bytes of a file, $4: the most bytes in all.
say_status_files() {
  local index inode size start resumes restarted written from path want begin left=$4 place=0
  local -a told=() owner=() lengths=() got=()
  if empty "$1"; then return; fi
  # A job chooses its directory names: a control character could forge a line of this list.
  search "$1" 25 \
    'exec find "$@" -maxdepth 3 ! -path "*[[:cntrl:]]*" -name status.json -type f -printf "%i\t%s\t%T@\t%p\n"'
  cat -- "$tmp/unsearched" >>"$tmp/unread" || lost
  # The known files first, then new ones, the newest first, up to the limit. New files count only if the search was
  # complete. Inodes and offsets are compared as text where they can be: on Lustre an inode
  # needs all of 64 bits, and awk counts in floating point.
  awk -F'\t' -v most="$status_files_per_job" -v most_bytes="$3" -v seed="$RANDOM" '
    function micros(time) { return sprintf("%.0f", time * 1000000) }
    function changed(j, inode, size, start, restarted, time, path,    want, resumes) {
      resumes = start
      if (size - start > backlog[j] && size > most_bytes) start = sprintf("%.0f", size - most_bytes)
      want = size - start
      if (want > most_bytes) want = most_bytes
      # Short parts come first, so that one huge file delays no other; equal lengths have a random order.
      printf "%.0f\t%.6f\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", want, rand(), j, inode, size, \
        start, resumes, restarted, micros(time), path
    }
    BEGIN { srand(seed) }
    pass == 1 { jobs[$2] = jobs[$2] " " $1; backlog[$1] = $4; next }
    pass == 2 { inode[$1, $5] = $2; offset[$1, $5] = $3; written[$1, $5] = $4; files[$1]++; next }
    pass == 3 { unsearched[$1]; next }
    {
      dir = $4
      while (sub("/[^/]*$", "", dir) && dir != "") {
        n = split(jobs[dir], ids, " ")
        for (k = 1; k <= n; k++) {
          j = ids[k]
          if ((j, $4) in inode) {
            same = inode[j, $4] "" == $1 ""
            if (same && offset[j, $4] "" == $2 "" && written[j, $4] "" == micros($3)) continue
            resumed = same && $2 + 0 >= offset[j, $4] + 0
            changed(j, $1, $2, resumed ? offset[j, $4] : 0, !resumed, $3, $4)
          } else if (!(j in unsearched) && $2 + 0 > 0) {
            fresh[j]++
            line[j, fresh[j]] = $0
          }
        }
      }
    }
    END {
      for (j in fresh)
        for (room = most - files[j]; room > 0; room--) {
          best = 0
          for (k = 1; k <= fresh[j]; k++) {
            split(line[j, k], f, "\t")
            if (line[j, k] != "" && (!best || f[3] + 0 > newest)) { best = k; newest = f[3] + 0 }
          }
          if (!best) break
          split(line[j, best], f, "\t")
          line[j, best] = ""
          changed(j, f[1], f[2], 0, 0, f[3], f[4])
        }
    }' pass=1 "$1" pass=2 "$2" pass=3 "$tmp/unsearched" pass=4 "$tmp/found" \
    | sort -t $'\t' -k1,1n -k2,2n | cut -f3- >"$tmp/changed" || lost
  if empty "$tmp/changed"; then return; fi
  earlier_runs "$1"
  : >"$tmp/reads" || lost
  while IFS=$'\t' read -r index inode size start resumes restarted written from path; do
    want=$((size - start))
    if ((want > $3)); then want=$3; fi
    if ((want > left)); then want=$left; fi
    left=$((left - want))
    # A file is also named if there is no room for it: the last reader must know that there is more.
    told+=("FILE $index $inode $size $start $resumes $restarted $written $from $path")
    owner+=("$index")
    if ((want > 0 || (start > 0 && start == size))); then
      begin=$((start > status_overlap ? start - status_overlap : 0))
      want=$((want + start - begin))
      printf '%s\t%s\t%s\t%s\t%s\n' "$index" "$place" "$begin" "$want" "$path" >>"$tmp/reads" || lost
    fi
    lengths+=("$want")
    place=$((place + 1))
  done <"$tmp/changed"
  if ((place == 0)); then return; fi
  read_parts "$tmp/reads"
  while read -r place size; do
    if ((size > 0)); then got[place]=$size; fi
  done < <(sizes "$tmp/parts")
  for place in "${!told[@]}"; do
    if ((${got[place]-0} < lengths[place])); then printf '%s\n' "${owner[place]}" >>"$tmp/unread" || lost; fi
    say "${told[place]}"
    say "DATA ${got[place]-0}"
  done
  say_bytes BYTES "$tmp/parts" ${got[@]+"${!got[@]}"}
}

# Adds the note of the job's newest run to each line of $tmp/changed: "microseconds since 1970 of that note, number of the run,
# bytes of earlier runs", or "- 0 0" without a note. Files of jobs whose note could not be searched are left out. $1: as
# above.
earlier_runs() {
  awk -F'\t' 'pass == 1 { some[$1]; next } $1 in some { print $1 "\t" $3 }' pass=1 "$tmp/changed" pass=2 "$1" >"$tmp/states" || lost
  search "$tmp/states" 20 \
    'exec find "$@" -maxdepth 1 -name status_from -type f -size -64k -printf "%T@\t%h\n"'
  cat -- "$tmp/unsearched" >>"$tmp/unread" || lost
  sed 's|\t\(.*\)$|\t\1\t\1/status_from|' "$tmp/found" >"$tmp/notes" || lost
  if ! add_notes; then
    copy_notes
    add_notes || lost
  fi
  mv -f -- "$tmp/noted" "$tmp/changed" || lost
}

# Writes the lines of $tmp/changed, with the notes of $tmp/notes ("time TAB state directory TAB path"), to $tmp/noted. One that
# hangs blocks all of them.
add_notes() {
  # shellcheck disable=SC2016
  timeout -k 1 5 awk -F'\t' '
    pass == 1 { jobs[$2] = jobs[$2] " " $1; next }
    pass == 2 { unsearched[$1]; next }
    pass == 3 {
      n = split(jobs[$2], ids, " ")
      note = $3
      for (lines = 0; lines < 1000 && (getline text < note) > 0; lines++)
        if (text ~ /^[0-9]+ [0-9]+ /) {
          # The job can write here too. No file has a size of 19 digits.
          split(text, f, " ")
          if (length(f[2]) < 19) for (k = 1; k <= n; k++) from[ids[k], f[1]] = f[2]
        } else if (text ~ /^run [0-9]+$/)
          for (k = 1; k <= n; k++) run[ids[k]] = substr(text, 5, 9)
      close(note)
      for (k = 1; k <= n; k++) at[ids[k]] = sprintf("%.0f", $1 * 1000000)
      next
    }
    !($1 in unsearched) {
      path = $8
      for (k = 9; k <= NF; k++) path = path "\t" $k
      print $1 "\t" $2 "\t" $3 "\t" $4 "\t" $5 "\t" $6 "\t" $7 "\t" ($1 in at ? at[$1] : "-") " " run[$1] + 0 " " (($1, $2) in from ? from[$1, $2] : 0) "\t" path
    }' pass=1 "$tmp/states" pass=2 "$tmp/unsearched" pass=3 "$tmp/notes" pass=4 "$tmp/changed" >"$tmp/noted"
}

# Copies the notes that can be read in time, and leaves out the files of the other jobs.
copy_notes() {
  local time dir begun=$SECONDS place=0
  : >"$tmp/copied" || lost
  while IFS=$'\t' read -r time dir _; do
    place=$((place + 1))
    if ((SECONDS - begun < 10)) && timeout -k 1 1 head -c 65536 -- "$dir/status_from" >"$tmp/note.$place" 2>/dev/null </dev/null; then
      printf '%s\t%s\t%s\n' "$time" "$dir" "$tmp/note.$place" >>"$tmp/copied" || lost
    else
      dir=$dir awk -F'\t' '$2 == ENVIRON["dir"] { print $1 }' "$tmp/states" | tee -a -- "$tmp/unsearched" >>"$tmp/unread" \
        || lost
    fi
  done <"$tmp/notes"
  mv -f -- "$tmp/copied" "$tmp/notes" || lost
}

# One process reads parts of many files and another encodes them: one for each file would take as long as all other work.

# By now the file may be a pipe, on which an open would wait, or a link.
# shellcheck disable=SC2016
part_reader='
  while IFS=$(printf "\t") read -r index place begin want path; do
    dd if="$path" of="$1/$place" bs=64K iflag=skip_bytes,count_bytes,fullblock,nonblock,nofollow skip="$begin" count="$want" status=none
    tell THROUGH
  done'

# Reads parts of files into $tmp/parts, each into a file named by its place. If a part cannot be read, its file is missing or
# too short. $1: file of lines "index TAB place TAB first byte TAB bytes to read TAB path".
read_parts() {
  mkdir -p -- "$tmp/parts"
  walk "$part_reader" "$1" "$tmp/parts"
}

# Prints the lines "name bytes" of the files of a directory. $1: directory.
sizes() { find "$1" -type f -printf '%f %s\n'; }

# Prints files, concatenated, as one line of base64. $1: the tag of the line, $2: their directory, the
# rest: their names.
say_bytes() {
  local directory=$2
  if (($# == 2)); then return; fi
  printf '%s ' "$1"
  shift 2
  printf '%s\0' "$@" | (cd "$directory" && xargs -0 cat --) | base64 -w0
  say ''
}
