mapfile -t _tao_hosts < <(PATH=$_tao_path scontrol show hostnames "$SLURM_JOB_NODELIST")
if ((${#_tao_hosts[@]} != _tao_policy_nodes + _tao_rollout_nodes)); then
  echo "tao-slurm: the roles need $((_tao_policy_nodes + _tao_rollout_nodes)) nodes, but the job has ${#_tao_hosts[@]}: '$SLURM_JOB_NODELIST'" >&2
  exit 122
fi
# $2 of the hosts, from number $1 on, joined by $3.
_tao_slice() {
  local IFS=$3
  printf '%s' "${_tao_hosts[*]:$1:$2}"
}
export CONTROLLER_NODE=${_tao_hosts[0]} COSMOS_CONTROLLER_HOST=${_tao_hosts[0]}:$_tao_controller_port
POLICY_NODES=$(_tao_slice 0 "$_tao_policy_nodes" ' ')
ROLLOUT_NODES=$(_tao_slice "$_tao_policy_nodes" "$_tao_rollout_nodes" ' ')
export POLICY_NODES ROLLOUT_NODES
PATH=$_tao_path mkdir -p -- "$_tao_logs"/{controller,policy,rollout}
