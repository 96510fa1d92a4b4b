mapfile -t _tao_hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
if ((${#_tao_hosts[@]} != _tao_policy_nodes + _tao_rollout_nodes)); then
  echo "tao-slurm: the roles need $((_tao_policy_nodes + _tao_rollout_nodes)) nodes, but the job has ${#_tao_hosts[@]}: '$SLURM_JOB_NODELIST'" >&2
  exit 122
fi
# So many hosts ($2), from number $1 on, joined by $3.
_tao_slice() {
  local IFS=$3
  printf '%s' "${_tao_hosts[*]:$1:$2}"
}
export CONTROLLER_NODE=${_tao_hosts[0]} COSMOS_CONTROLLER_HOST=${_tao_hosts[0]}:$_tao_controller_port
POLICY_NODES=$(_tao_slice 0 "$_tao_policy_nodes" ' ')
ROLLOUT_NODES=$(_tao_slice "$_tao_policy_nodes" "$_tao_rollout_nodes" ' ')
export POLICY_NODES ROLLOUT_NODES
mkdir -p -- "$_tao_logs"/{controller,policy,rollout}

# Waits until all roles have ended with code 0, or one has failed: then the others are terminated, and its code is in $_tao_code.
_tao_wait_roles() {
  local role running
  while :; do
    running=0
    if ((_tao_warned)); then _tao_pass_warning_on; fi
    for role in "${!_tao_programs[@]}"; do
      if kill -0 "${_tao_programs[role]}" 2>/dev/null; then
        running=1
        continue
      fi
      _tao_wait "${_tao_programs[role]}"
      _tao_first_code "$_tao_state/failed_${_tao_roles[role]}"
      unset "_tao_programs[role]"
      if ((_tao_code != 0)); then
        echo "tao-slurm: the role ${_tao_roles[role]} has ended with code $_tao_code; the others are terminated" >&2
        _tao_end_roles
        return
      fi
    done
    if ((!running)); then break; fi
    sleep 1 &
    wait $!
  done
}

_tao_end_roles() {
  local failed=$_tao_code program
  if ((${#_tao_programs[@]})); then _tao_ask_to_end; fi
  if ! _tao_roles_end_within 60; then
    kill -TERM "${_tao_programs[@]}" 2>/dev/null
    _tao_roles_end_within 15 || kill -KILL "${_tao_programs[@]}" 2>/dev/null
  fi
  for program in "${_tao_programs[@]}"; do _tao_wait "$program"; done
  _tao_code=$failed
}
# Waits for the end of all roles. $1: the most seconds. Fails if one still runs.
_tao_roles_end_within() {
  local tries
  for ((tries = 0; tries < $1; tries++)); do
    if ! kill -0 "${_tao_programs[@]}" 2>/dev/null; then return; fi
    sleep 1 &
    wait $!
  done
  return 1
}
