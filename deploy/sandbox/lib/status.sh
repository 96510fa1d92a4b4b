# shellcheck shell=bash
# `sandbox status`: one line per component, with its address and state.

sandbox_status() {
  instance_load || die "no sandbox in $SANDBOX_DIR; start one with: sandbox up"
  processes_forget_stale
  local bad=0 i node states=
  printf '%-15s %-51s %s\n' slurm "${ROOTFS:-/}" "$SLURM"
  report munged "$MUNGE_SOCKET" || bad=1
  report mariadbd "$MARIADB_SOCKET" || bad=1
  report slurmdbd "$CTL_ADDR:$SLURMDBD_PORT" || bad=1
  report slurmctld "$CTL_ADDR:$SLURMCTLD_PORT" || bad=1
  report postgres "127.0.0.1:$POSTGRES_PORT" || bad=1
  for i in "${!LOGIN_HOSTS[@]}"; do
    report "sshd-${LOGIN_HOSTS[i]}" "${LOGIN_ADDR[i]}:$SSH_PORT" || bad=1
  done
  states=$(! alive munged || inside munged timeout 5 sinfo -h -N -o '%N %T' 2>/dev/null | sort -u)
  for node in "${NODES[@]}"; do
    report "slurmd-$node" "$(node_addr "$node"):6818" "$(sed -n "s/^$node //p" <<<"$states")" || bad=1
  done
  return "$bad"
}

# report NAME ADDRESS [NODE-STATE]
report() {
  local state=running well=0
  alive "$1" || state=stopped well=1
  if (($# == 3)); then
    state+=", ${3:-unknown}"
    [[ $3 =~ ^(idle|mixed|allocated|completing)$ ]] || well=1
  fi
  printf '%-15s %-51s %s\n' "$1" "$2" "$state"
  return "$well"
}
