# shellcheck shell=bash
# The controller and the nodes.

slurmctld_up() {
  alive slurmctld && return
  launch slurmctld ctl setpriv --reuid=slurm --regid=slurm --init-groups slurmctld -D
}

slurmctld_stop_reconfigured() {
  slurm_conf_write
  ! alive slurmctld || stop slurmctld
}

# Starts the controller again with a new configuration.
slurmctld_reconfigure() {
  slurmctld_stop_reconfigured
  slurmctld_up
  await_daemon slurmctld 30 inside munged scontrol ping
}

nodes_up() {
  local node off=()
  for node in "${NODES[@]}"; do
    alive "slurmd-$node" || off+=("$node")
  done
  ((${#off[@]})) || return 0
  nodes_boot "${off[@]}"
}

# nodes_boot NODE...: boots nodes that are off.
nodes_boot() {
  local node
  nodes_declare_down "$@"
  for node in "$@"; do
    # A node whose daemon died may still run its steps: power it off before booting it.
    stop "slurmd-$node"
    install -d "$SANDBOX_DIR/spool/$node"
    launch --machine --netns "$(node_netns "$node")" "slurmd-$node" "$node" slurmd -D
  done
}

# The controller detects a reboot by the uptime of a node. These nodes have the host's uptime, so it would assume
# that their jobs still run. Marking them as down ends the jobs; they are back once they register.
nodes_declare_down() {
  [[ -e $SANDBOX_DIR/state/slurm/job_state ]] || return 0
  await_daemon slurmctld 15 inside munged scontrol ping
  inside munged scontrol update "nodename=$(joined "$@")" state=down reason='powered off' ||
    die 'slurmctld refused to mark nodes as down'
}

# slurmd accepts a GPU only if its File= is a character device; these are copies of /dev/null.
gpus_make() {
  local i
  for i in {0..7}; do
    [[ -c $SANDBOX_DIR/dev/gpu$i ]] || mknod -m 666 "$SANDBOX_DIR/dev/gpu$i" c 1 3
  done
}

# node_boot NODE: boots a node and waits until it accepts jobs.
node_boot() {
  alive "slurmd-$1" || nodes_boot "$1"
  await_daemon "slurmd-$1" 30 node_ready "$1"
}

node_ready() {
  [[ $(inside munged timeout 5 sinfo -h -N -n "$1" -o %t 2>/dev/null | head -n 1) == @(idle|mix|alloc|comp) ]]
}

nodes_ready() {
  local ready
  ready=$(inside munged timeout 5 sinfo -h -N -o '%N %t' 2>/dev/null |
    sort -u | grep -Ec ' (idle|mix|alloc|comp)$' || true)
  ((ready == ${#NODES[@]}))
}

# Nodes that a test drained, or that went down with jobs, do not resume by themselves.
nodes_resume() {
  local node state
  while read -r node state; do
    [[ $state != *@(drain|drng|down|fail)* ]] ||
      inside munged scontrol update "nodename=$node" state=resume 2>/dev/null || true
  done < <(inside munged sinfo -h -N -o '%N %t' | sort -u)
}

slurm_await() {
  await_daemon slurmctld 15 inside munged scontrol ping
  nodes_resume
  await 180 nodes_ready ||
    die "not every node came up: $(inside munged sinfo -h -N -o '%N=%t' | sort -u | paste -sd ' ')"
}
