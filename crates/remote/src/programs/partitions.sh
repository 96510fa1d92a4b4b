# shellcheck shell=bash
# Lists the partitions, with the number of nodes for each kind and state, and the accounts that the user may charge.
#
# stdin: nothing.

# sinfo takes options from these too (sinfo(1)).
unset "${!SINFO_@}" "${!SCONTROL_@}" "${!SACCTMGR_@}"
rows=5000
# Of a pipe that writes a list, any part may have had no room.
set -o pipefail

# Keeps what a command shows, or nothing: a limit that is cut would be another. $1: file, the rest: the command.
show() {
  local file=$1
  shift
  keep_for 10 "$@" >"$file" 2>/dev/null </dev/null || : >"$file"
}
show "$tmp/show" scontrol -a -o show partition &
show "$tmp/config" scontrol show config &
# A cluster without accounting has none.
show "$tmp/assoc" sacctmgr -n -P show assoc where user="$(id -un)" format=cluster,account,partition,qos &
# Nodes that agree in all of these columns share a row, so the answer does not grow with the cluster.
keep_for 25 sinfo -a -h -o '%P|%a|%l|%L|%D|%T|%c|%m|%G|%f' >"$tmp/nodes" 2>"$tmp/err" </dev/null
code=$?
wait
if [ "$code" = 0 ] && complains "$tmp/err"; then code=1; fi
if [ "$code" != 0 ]; then
  say "REFUSED $code $(encoded_tail "$tmp/err" 2000)"
  finish
fi
# Whether a job must be within the limits of all its partitions, or of one: "ALL", "ANY" or "NO".
say "ENFORCE $(sed -n 's/^EnforcePartLimits *= *//p' "$tmp/config" | head -n 1)"
say "ARRAY $(sed -n 's/^MaxArraySize *= *//p' "$tmp/config" | head -n 1)"
# Of these only what is for this cluster counts.
say "CLUSTER $(sed -n 's/^ClusterName *= *//p' "$tmp/config" | head -n 1)"
say "ACCOUNTS $(sed -n 's/^AccountingStorageEnforce *= *//p' "$tmp/config" | head -n 1)"
sed -n "1,${rows}p" "$tmp/assoc" | cut -c 1-4000 | sed 's/^/ASSOC /' >"$tmp/part" || lost
say_file "$tmp/part"
sed -n "1,${rows}p" "$tmp/show" | cut -c 1-20000 | sed 's/^/SHOW /' >"$tmp/part" || lost
say_file "$tmp/part"
sed -n "1,${rows}p" "$tmp/nodes" | cut -c 1-4000 | sed 's/^/ROW /' >"$tmp/part" || lost
say_file "$tmp/part"
finish
