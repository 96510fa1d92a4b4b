# shellcheck shell=bash
# The state of many jobs: one squeue, sacct only for jobs that squeue does not explain, and the new bytes of their files.
# No process is started per job, only per file that changed.
#
# stdin: a line "number of jobs, number of arrays, number of known status files, bytes per file, bytes altogether, most unread bytes of a file, how the
# names of jobs begin that are reported without being asked for, how many of them at most"; for each job a line
# "index, id, name, results directory, state directory,
# log directory if its signs of life are asked for, index in its array, 1 if its script tells the states of services, its progress file, how many
# bytes are read of what it tells of its use"; for each array a line "id, name, indices that are reported when they have
# left the waiting rest"; for each known status file a line "index of its job, inode,
# offset, path". Absent fields are "-".

# The signs of life of jobs: one find for all of them, reduced to sums.

# Prints for each job the number of its files, their bytes, and when the newest was written; nothing for a job whose
# directories could not be searched to the end. The marker `usage` is left out: its script rewrites it, whatever the job does.
# $1: file of lines "index TAB directory", several for a job, with "TAB state" after its state directory.
say_signs_of_life() {
  # shellcheck disable=SC2016
  search "$1" 20 'set -o pipefail
    find "$@" -type f -printf "%H\t%s\t%T@\t%P\n" | awk -F"\t" "
      { d = \$1 (\$4 ~ /^([.]usage[.][^\/]*|usage)\$/ ? \"\tusage\" : \"\") }
      { files[d]++; bytes[d] += \$2; if (\$3 + 0 > newest[d]) newest[d] = \$3 + 0 }
      END { for (d in files) printf \"%d\t%.0f\t%.0f\t%s\n\", files[d], bytes[d], newest[d] * 1000000, d }"'
  awk -F'\t' '
    pass == 1 { unsearched[$1]; next }
    pass == 2 { files[$4, $5] = $1; bytes[$4, $5] = $2; newest[$4, $5] = $3; next }
    function add(job, group) {
      jobs[job]
      f[job] += files[group]
      b[job] += bytes[group]
      if (newest[group] + 0 > n[job]) n[job] = newest[group] + 0
    }
    { add($1, $2 SUBSEP) }
    $3 != "state" { add($1, $2 SUBSEP "usage") }
    END { for (j in jobs) if (!(j in unsearched)) printf "ALIVE %s %d %.0f %.0f\n", j, f[j], b[j], n[j] }' \
    pass=1 "$tmp/unsearched" pass=2 "$tmp/found" pass=3 "$1" >"$tmp/signs" || lost
  say_file "$tmp/signs"
}

# Prints a line "tag index text" for each file of running jobs that could be read. $1: the tag, $2: as for read_each, $3: the name of the file.
say_each() {
  read_each "$2" "$3"
  sed "s/^\([0-9]*\) $3 /$1 \1 /" "$tmp/lines" >"$tmp/reports" || lost
  say_file "$tmp/reports"
}

# Any part of a pipe that writes a list may run out of room.
set -o pipefail

IFS=$'\t' read -r count arrays known per_file altogether backlog prefix most || give_up 'the list of jobs did not arrive whole'
: >"$tmp/watched" || lost
: >"$tmp/arrays" || lost
: >"$tmp/known" || lost
awk -v tmp="$tmp" -v count="$count" -v arrays="$arrays" \
  '{ print > (tmp (NR <= count ? "/watched" : NR <= count + arrays ? "/arrays" : "/known")) }' || lost
if [ "$(cat -- "$tmp/watched" "$tmp/arrays" "$tmp/known" | wc -l)" != $((count + arrays + known)) ]; then
  give_up 'the list of jobs did not arrive whole'
fi

printf -v now '%(%s)T' -1
say "TIME $now"

# A job's name may hold any character, even a newline. So rows begin with a random word, and the name ends at it. Free text
# comes last, where a cut does no harm.
nonce="$RANDOM$RANDOM$RANDOM$RANDOM"
# With -a, because a hidden partition hides our own jobs too. By default squeue cuts long sets of indices (SLURM_BITSTR_LEN in squeue(1)).
SLURM_BITSTR_LEN=0 keep_for 45 squeue --me -a -h -t all -o "$nonce|%A|%T|%F|%K|%j|$nonce|%V|%S|%e|%P|%N|%r" \
  >"$tmp/squeue" 2>"$tmp/squeue.err" </dev/null
code=$?
if ((code == 74)); then lost; fi
# squeue may fail and still return 0. Then a missing job means nothing.
answered=1
if [ "$code" != 0 ] || complains "$tmp/squeue.err"; then answered=0; fi
say "SQUEUE $answered $code $(encoded_tail "$tmp/squeue.err" 2000)"

: >"$tmp/rows" || lost
: >"$tmp/missing" || lost
: >"$tmp/questions" || lost
: >"$tmp/ended" || lost
: >"$tmp/want" || lost
: >"$tmp/alive" || lost
: >"$tmp/serving" || lost
: >"$tmp/measured" || lost
: >"$tmp/used" || lost
if ((answered)); then
  # A job with our id and another name is another job, because a controller that was reset gives ids again. A job with our
  # name is in the queue, even if the rest of its row is malformed. Other jobs of our user are reported only if their names
  # look like ours.
  awk -F'\t' -v nonce="$nonce" -v tmp="$tmp" -v prefix="$prefix" -v most="$most" -v backlog="$backlog" '
    BEGIN {
      ended = "^(COMPLETED|FAILED|TIMEOUT|CANCELLED|NODE_FAIL|BOOT_FAIL|DEADLINE|OUT_OF_MEMORY|PREEMPTED|REVOKED|LAUNCH_FAILED|RECONFIG_FAIL)$"
    }
    # Whether an index is one of the rest of an array.
    function is_of_rest(id, k,    n, at, part, ends) {
      n = split(rest[id], part, ",")
      for (at = 1; at <= n; at++) {
        if (split(part[at], ends, "-") == 1) ends[2] = ends[1]
        if (k + 0 >= ends[1] + 0 && k + 0 <= ends[2] + 0) return 1
      }
      return 0
    }
    pass == 1 { if ($7 == "-") watched[$2]; else { watched[$2 "_" $7]; array[$2] }; next }
    pass == 2 { rest[$1] = $3; array[$1]; next }
    pass == 3 {
      at = index($0, "|" nonce "|")
      if (index($0, nonce "|") != 1 || !at) {
        if (odd++ < 1000) print "ROW ?" > (tmp "/rows")
        # A row that was cut may be of an array, and then its tasks are not missing.
        if (index($0, nonce) == 1 && (split($0, f, "|") < 6 || f[4] in array))
          print "ARRAY " (f[4] in array ? f[4] : "-") " ?" > (tmp "/rows")
        next
      }
      name = substr($0, length(nonce) + 2, at - length(nonce) - 2)
      split(name, f, "|")
      # -a also shows jobs that run elsewhere in a federation. Accounting knows how they end.
      if (f[2] == "REVOKED") next
      for (k = 1; k <= 4; k++) name = substr(name, index(name, "|") + 1)
      if (f[4] ~ /^(N\/A|)$/) f[4] = ""
      # A rest that was canceled task by task, as by scancel --name, has lost its indices.
      if (f[4] == "" && f[3] in array) {
        if (f[2] != "CANCELLED" || rest[f[3]] == "") next
        f[4] = rest[f[3]]
      }
      if (f[4] ~ /^[0-9]+$/ && f[3] in array) {
        # The only task of the rest has the id of the array too.
        if (f[1] == f[3] && f[2] == "CANCELLED") of_rest[f[3] "_" f[4] "|" name]
        f[1] = f[3] "_" f[4]
      } else if (f[4] != "") f[1] = f[3]
      state[f[1] "|" name] = f[2]
      # Only accounting has the exit code and signal of a failure, who canceled a job, and whether a held job failed to
      # launch.
      if (f[2] == "FAILED" || f[2] == "CANCELLED" || $0 ~ /[|]JobHeld(Admin|User)$/)
        unsaid[f[1] "|" name]
      # Tasks that were canceled together before they began have one record, which is shown to those who ask for the array.
      if (f[2] == "CANCELLED" && f[4] ~ /[^0-9]/ && rest[f[3]] != "" && !asked[f[3]]++) print f[3] > (tmp "/questions")
      if (f[4] != "" && f[3] in array) {
        # Tasks that ended stay in the queue for a while: only those are reported that were asked for.
        if (f[1] == f[3] || f[1] in watched || is_of_rest(f[3], f[4]))
          print "ARRAY " f[3] " " f[4] " " f[3] "|" f[2] "|" substr(name, 1, 200) substr($0, at + length(nonce) + 1, 2500) > (tmp "/rows")
        next
      }
      # The tasks of an array that was not asked for are one job. Those that have ended stay in the queue for a while.
      if (f[4] != "" && (f[2] ~ ended || listed[f[3]]++)) next
      if (f[1] in watched) room = 2500
      else if (prefix != "-" && index(name, prefix) == 1 && others++ < most) room = 200
      else next
      gsub(/[|]/, "?", name)
      print "ROW " f[1] "|" f[2] "|" substr(name, 1, 200) substr($0, at + length(nonce) + 1, room) > (tmp "/rows")
      next
    }
    {
      id = $7 == "-" ? $2 : $2 "_" $7
      there = (id "|" $3) in state
      found = there ? state[id "|" $3] : ""
      if (!there || (id "|" $3) in unsaid) {
        print id > (tmp "/missing")
        # For a task without a row of its own the whole array is asked for.
        question = $7 == "-" || there && !((id "|" $3) in of_rest) ? id : $2
        if (!asked[question]++) print question > (tmp "/questions")
      }
      if (!there || found ~ ended)
        print $1 "\t" $5 > (tmp "/ended")
      if (found !~ /^(PENDING|CONFIGURING|REQUEUED|REQUEUE_HOLD|REQUEUE_FED|RESV_DEL_HOLD|SPECIAL_EXIT|POWER_UP_NODE)$/)
        print $1 "\t" $4 "\t" $5 "\t" backlog > (tmp "/want")
      if ($6 != "-" && found == "RUNNING")
        print $1 "\t" $4 "\n" $1 "\t" $5 "\tstate\n" $1 "\t" $6 > (tmp "/alive")
      if ($8 != "-" && found == "RUNNING") print $1 "\t" $5 > (tmp "/serving")
      if ($9 != "-" && found == "RUNNING") print $1 "\t" $9 "\t" $5 "/started" > (tmp "/measured")
      if ($10 != "-" && found == "RUNNING") print $1 "\t" $5 "\t-\t" $10 > (tmp "/used")
    }' pass=1 "$tmp/watched" pass=2 "$tmp/arrays" pass=3 "$tmp/squeue" pass=4 "$tmp/watched" || lost
else
  # If squeue failed, only files that were read before are read.
  awk -F'\t' -v backlog="$backlog" '
    pass == 1 { read[$1]; next }
    $1 in read { print $1 "\t" $4 "\t" $5 "\t" backlog }' \
    pass=1 "$tmp/known" pass=2 "$tmp/watched" >"$tmp/want" || lost
fi
say_file "$tmp/rows"

asked=0
code=0
: >"$tmp/sacct.err" || lost
: >"$tmp/records" || lost
begun=$SECONDS
while mapfile -t -n 500 ids && ((${#ids[@]} > 0)); do
  asked=1
  if ((SECONDS - begun > 30)); then
    code=124
    break
  fi
  list=$(IFS=, && printf '%s' "${ids[*]}")
  # -D: a row for every run.
  keep_for 30 sacct -D -X -P -n --delimiter=$'\037' -o JobID,State,ExitCode,JobName,Start,End,NodeList,Reason \
    -j "$list" >"$tmp/sacct" 2>"$tmp/sacct.err" </dev/null
  code=$?
  if ((code == 74)); then lost; fi
  if [ "$code" = 0 ] && complains "$tmp/sacct.err"; then code=1; fi
  if [ "$code" != 0 ]; then break; fi
  # The last two rows of a job, however often it was requeued. Of an array the tasks that are missing, and those that never began.
  awk -F'\037' '
    pass == 1 { missing[$1]; next }
    index($1, "_") && $1 !~ /_\[/ && !($1 in missing) { next }
    { key = $1 "\037" $4; before[key] = last[key]; last[key] = "RECORD " substr($0, 1, 3000) }
    END { for (key in last) { if (before[key] != "") print before[key]; print last[key] } }' \
    pass=1 "$tmp/missing" pass=2 "$tmp/sacct" >>"$tmp/records" || lost
done <"$tmp/questions"
say "SACCT $asked $code $(encoded_tail "$tmp/sacct.err" 2000)"
say_file "$tmp/records"

say_markers "$tmp/ended"
say_status_files "$tmp/want" "$tmp/known" "$per_file" "$altogether"
if [ -s "$tmp/alive" ]; then say_signs_of_life "$tmp/alive"; fi
if [ -s "$tmp/serving" ]; then say_each SERVICES "$tmp/serving" services; fi
if [ -s "$tmp/measured" ]; then say_each PROGRESS "$tmp/measured" ''; fi
if [ -s "$tmp/used" ]; then say_each USAGE "$tmp/used" usage; fi
finish
