# shellcheck shell=bash
# What a login host has and what the cluster says to it, as facts: what they mean is judged elsewhere.
#
# stdin: a line "whether to ask the cluster, base directory, account, GPUs for a trial, number of partitions"; then
# each partition on a line of its own.

# What sbatch says of times is for people.
unset SLURM_TIME_FORMAT

IFS=$'\t' read -r deep base account gpus count || give_up 'the question did not arrive whole'
partitions=()
for ((index = 0; index < count; index++)); do
  IFS= read -r partition || give_up 'the question did not arrive whole'
  partitions+=("$partition")
done

for name in sbatch squeue sacct scancel scontrol sinfo srun tar; do
  if command -v "$name" >/dev/null; then say "COMMAND $name 1"; else say "COMMAND $name 0"; fi
done
if command -v enroot >/dev/null; then say 'ENROOT 1'; else say 'ENROOT 0'; fi

# Runs a command in the background, with its output in $tmp/NAME.out, .err and .code. $1: name, the rest: the command.
ask() {
  local name=$1
  shift
  {
    timeout -k 2 10 "$@" >"$tmp/$name.out" 2>"$tmp/$name.err" </dev/null
    echo "$?" >"$tmp/$name.code"
  } 2>/dev/null &
}
# The exit code and output of a command. $1: name, $2: "out" or "err".
told() {
  local code=125
  if [ -s "$tmp/$1.code" ]; then read -r code <"$tmp/$1.code"; fi
  printf '%s %s' "$code" "$(encoded_tail "$tmp/$1.$2" 4000)"
}

# Writes and removes a file, as jobs do. In the background, so that a file system that hangs blocks nothing else.
# shellcheck disable=SC2016 # for the inner shell
ask base bash -c '
  dir=$1
  if [ -d "$dir" ]; then
    if file=$(mktemp "$dir/.preflight.XXXXXXXX") && head -c 65536 /dev/zero >"$file" \
      && [ "$(stat -c %s "$file")" = 65536 ]; then
      echo writable
    else
      echo unwritable
    fi
    if [ -n "$file" ]; then rm -f -- "$file"; fi
  else
    above=$dir
    while [ ! -e "$above" ]; do above=${above%/*}; above=${above:-/}; done
    if [ "$above" != "$dir" ] && [ -d "$above" ] && [ -w "$above" ] && [ -x "$above" ]; then
      echo creatable
    else
      echo uncreatable
    fi
    echo "$above is what there is of $dir" >&2
    dir=$above
  fi
  df -P -B1 -- "$dir" 2>/dev/null | awk "NR == 2 { print \"space\", \$4, \$2 }"
  df -P -i -- "$dir" 2>/dev/null | awk "NR == 2 { print \"inodes\", \$4 }"' base "$base"

if ((deep)); then
  ask ping scontrol ping
  ask config scontrol show config
  user=$(id -un)
  ask assoc sacctmgr -n -P show assoc where "user=$user" format=cluster,account,partition
  ask srun srun --help
  if command -v lfs >/dev/null; then
    ask quota lfs quota -u "$user" "$base"
    quota=lfs
  elif command -v quota >/dev/null; then
    ask quota quota -w
    quota=quota
  else
    quota=none
  fi
  printf '#!/bin/bash\ntrue\n' >"$tmp/script"
  trial=(sbatch --test-only --nodes=1 --time=1)
  if [ "$account" != - ]; then trial+=("--account=$account"); fi
  if ((gpus > 0)); then trial+=("--gpus-per-node=$gpus"); fi
  if ((count == 0)); then ask trial0 "${trial[@]}" "$tmp/script"; fi
  for index in "${!partitions[@]}"; do
    ask "trial$index" "${trial[@]}" "--partition=${partitions[index]}" "$tmp/script"
  done
fi
wait

say "BASE $(told base err)"
head -n 3 "$tmp/base.out" | cut -c 1-200 | sed 's/^/ABOUT /' >"$tmp/part"
say_file "$tmp/part"
if ((deep)); then
  say "PING $(told ping out)"
  say "CLUSTER $(sed -n 's/^ClusterName *= *//p' "$tmp/config.out" | head -n 1 | cut -c 1-200 | base64 -w0)"
  say "ASSOC $(told assoc err)"
  head -n 500 "$tmp/assoc.out" | cut -c 1-400 | sed 's/^/ROW /' >"$tmp/part"
  say_file "$tmp/part"
  if grep -q -e --container-image "$tmp/srun.out"; then say "SRUN 1 $(told srun err)"; else say "SRUN 0 $(told srun err)"; fi
  say "QUOTA $quota $(if [ "$quota" = none ]; then printf '0 -'; else told quota out; fi)"
  for index in "${!partitions[@]}"; do say "TRIAL $index $(told "trial$index" err)"; done
  if ((count == 0)); then say "TRIAL 0 $(told trial0 err)"; fi
  if [ -e "$credentials" ]; then
    say "CREDENTIALS $(stat -L -c %a -- "$credentials" 2>/dev/null </dev/null || echo 0)"
    if [ -r "$credentials" ]; then machines "$credentials" | sort -u | sed 's/^/MACHINE /' >"$tmp/part" && say_file "$tmp/part"; fi
  else
    say 'CREDENTIALS -'
  fi
fi
finish
