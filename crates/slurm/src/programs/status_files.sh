# shellcheck shell=bash
# The status files of many jobs: one find for all of them, and a read only for those that changed.

# Prints what is new, and adds to $tmp/unread the indices of jobs whose files could not be looked for or read.
# $1: file of lines "index TAB results directory TAB known path TAB inode TAB offset", $2: at most so many bytes of a
# file, $3: at most so many bytes altogether.
say_status_files() {
  local index inode size start restarted path want left=$3
  # A job names its own directories: a name with a control character could forge a line of this list.
  search "$1" 40 \
    'exec find -H "$@" -maxdepth 3 ! -path "*[[:cntrl:]]*" -name status.json -type f -printf "%i\t%s\t%T@\t%p\n"'
  cat -- "$tmp/unsearched" >>"$tmp/unread"
  # The file known from last time if it is still there, else the one written last; after a search that did not end
  # nobody knows which that is. Inodes are compared as text: on Lustre they need all of 64 bits, and awk counts in
  # floating point.
  awk -F'\t' '
    pass == 1 { jobs[$2] = jobs[$2] " " $1; known[$1] = $3; inode[$1] = $4; offset[$1] = $5; next }
    pass == 2 { unsearched[$1]; next }
    {
      dir = $4
      while (sub("/[^/]*$", "", dir) && dir != "") {
        n = split(jobs[dir], ids, " ")
        for (k = 1; k <= n; k++) {
          j = ids[k]
          if (j in unsearched && $4 != known[j]) continue
          better = !(j in path) || $4 == known[j] || (path[j] != known[j] && $3 + 0 > time[j])
          if (better) { path[j] = $4; at[j] = $1; size[j] = $2; time[j] = $3 + 0 }
        }
      }
    }
    END {
      for (j in path) {
        same = path[j] == known[j] && at[j] "" == inode[j] ""
        if (same && size[j] + 0 == offset[j] + 0) continue
        resumed = same && size[j] + 0 > offset[j] + 0
        if (known[j] == "-" && size[j] + 0 == 0) continue
        print j "\t" at[j] "\t" size[j] "\t" (resumed ? offset[j] : 0) "\t" (resumed || known[j] == "-" ? 0 : 1) "\t" path[j]
      }
    }' pass=1 "$1" pass=2 "$tmp/unsearched" pass=3 "$tmp/found" >"$tmp/changed"
  while IFS=$'\t' read -r index inode size start restarted path; do
    want=$((size - start))
    if ((want > $2)); then want=$2; fi
    if ((want > left)); then want=$left; fi
    left=$((left - want))
    # A file that there is no room for is named all the same: who reads for the last time must know that there is more.
    say "FILE $index $inode $size $start $restarted $path"
    : >"$tmp/new"
    if ((want > 0)); then
      tail -c "+$((start + 1))" -- "$path" 2>/dev/null </dev/null | head -c "$want" >"$tmp/new"
      if (($(wc -c <"$tmp/new") < want)); then printf '%s\n' "$index" >>"$tmp/unread"; fi
    fi
    say "DATA $(encoded_tail "$tmp/new" "$want")"
  done <"$tmp/changed"
}
