# shellcheck shell=bash
# Looks everywhere for jobs whose submission had no answer.
#
# stdin: a line "number of jobs, since"; for each job a line "index, job name, state directory".

IFS=$'\t' read -r count since || give_up 'the list of jobs did not arrive whole'
cat >"$tmp/wanted"
if [ "$(wc -l <"$tmp/wanted")" != "$count" ]; then give_up 'the list of jobs did not arrive whole'; fi
cut -f2 -- "$tmp/wanted" >"$tmp/names"
cut -f1,3 -- "$tmp/wanted" >"$tmp/states"

# Runs a query about all names, 200 at a time. $@: the query, without the names at its end. Sets code.
ask_all() {
  local names list begun=$SECONDS
  : >"$tmp/rows"
  : >"$tmp/err"
  code=0
  while mapfile -t -n 200 names && ((${#names[@]} > 0)); do
    if ((SECONDS - begun > 30)); then
      code=124
      break
    fi
    list=$(IFS=, && printf '%s' "${names[*]}")
    timeout -k 5 30 "$@" "$list" >>"$tmp/rows" 2>"$tmp/err" </dev/null
    code=$?
    if [ "$code" = 0 ] && complains "$tmp/err"; then code=1; fi
    if [ "$code" != 0 ]; then break; fi
  done <"$tmp/names"
}

# Prints what the query found. $1: what it is called, $2: what its lines are called.
say_found() {
  say "$1 $code $(encoded_tail "$tmp/err" 2000)"
  awk -v tag="$2" '{ print tag " " substr($0, 1, 1000) }' "$tmp/rows" >"$tmp/framed"
  say_file "$tmp/framed"
}

say "TIME $(date +%s)"
ask_all squeue --me -h -t all -o '%A|%T|%j' -n
say_found SQUEUE ROW
# Without -S sacct looks at the present day only. In UTC, as the preamble says.
from=$(date -d "@$since" +%Y-%m-%dT%H:%M:%S)
ask_all sacct -X -P -n --delimiter='|' -S "$from" -o JobIDRaw,JobName --name
say_found SACCT RECORD

while IFS=$'\t' read -r index dir; do
  if [ -f "$dir/slurm_id" ]; then
    id=
    IFS= read -r -n 40 id 2>/dev/null <"$dir/slurm_id"
    say "ID $index $id"
  fi
done <"$tmp/states"
say_markers "$tmp/states"
finish
