# shellcheck shell=bash
# The commands.

readonly DAEMONS=(munged mariadbd slurmdbd slurmctld "${NODES[@]/#/slurmd-}"
  "${LOGIN_HOSTS[@]/#/sshd-}" postgres)

sandbox_up() {
  local began=${EPOCHREALTIME/./} background=() job
  install -d "$SANDBOX_DIR" "$SANDBOX_DIR"/{log,run}
  lock
  processes_forget_stale
  if instance_load && [[ -n $(faults_on) ]]; then
    say "ending active faults: $(faults_on | paste -sd ' ')"
    faults_undo_all
  fi
  if instance_load && rootfs_ready && all_alive && nodes_ready; then
    containers_build
    environments_copy
    say "already up (instance $INSTANCE, Slurm $SLURM)"
    unlock
    return
  fi
  packages_install
  rootfs_make
  release_keep
  instance_is_running || instance_claim
  users_make
  disks_up
  paths_make
  environments_copy
  network_up
  hosts_write
  gpus_make
  munge_up
  slurm_conf_write
  login_keys
  say "instance $INSTANCE, Slurm $SLURM: login hosts ${LOGIN_ADDR[*]} port $SSH_PORT, nodes $SUBNET.11-16"
  postgres_up & background+=($!)
  containers_build & background+=($!)
  mariadb_up
  slurmdbd_up
  associations_make
  for job in "${background[@]}"; do
    wait "$job" || exit 1
  done
  say 'databases, plugin and image are ready'
  slurmctld_up
  nodes_up
  login_up
  slurm_await
  env_write
  unlock
  say "up in $(((${EPOCHREALTIME/./} - began) / 1000)) ms; settings for the service: $SANDBOX_DIR/env"
}

sandbox_install() {
  install -d "$SANDBOX_DIR/log"
  lock
  packages_install
  rootfs_make
  unlock
}

# Python environments for the tests of launchers and of model servers, if `ci/setup --test` has installed them: the nodes see this directory.
environments_copy() {
  local name source copy
  for name in launchers evaluation; do
    source=$HERE/../../.tools/$name copy=$SANDBOX_DIR/$name
    if [[ ! -e $source/installed ]] || cmp --silent "$source/installed" "$copy/installed"; then continue; fi
    rm -rf "$copy"
    # Links need the same file system; without it directories alone are made.
    cp -al "$source" "$copy" 2>/dev/null || { rm -rf "$copy" && cp -a "$source" "$copy"; }
  done
}

# Concurrent commands would undo each other's work.
lock() {
  exec {LOCK}>"$SANDBOX_DIR/lock"
  flock -w 900 "$LOCK" || die "another sandbox command holds $SANDBOX_DIR/lock"
}

unlock() {
  exec {LOCK}>&-
  unset LOCK
}

all_alive() {
  local name
  for name in "${DAEMONS[@]}"; do
    alive "$name" || return 1
  done
}

# A number must not change while anything listens on what was derived from it.
instance_is_running() {
  local name
  instance_load || return 1
  for name in "${DAEMONS[@]}"; do
    ! alive "$name" || return 0
  done
  return 1
}

env_write() {
  replace "$SANDBOX_DIR/env" <<ENV
SLURM_USER=$LOGIN_USER
SLURM_HOSTNAME="${LOGIN_ADDR[0]}:$SSH_PORT,${LOGIN_ADDR[1]}:$SSH_PORT"
SLURM_PARTITION=polar,polar3,polar4,grizzly
SLURM_ACCOUNT=$ACCOUNT
SLURM_BASE_RESULTS_DIR=$BASE_RESULTS_DIR
SSH_KEY_PATH=$SANDBOX_DIR/ssh/id_ed25519
SSH_KNOWN_HOSTS=$SANDBOX_DIR/ssh/known_hosts
DATABASE_URL=postgres://postgres@127.0.0.1:$POSTGRES_PORT/tao_slurm
SANDBOX_DIR=$SANDBOX_DIR
SANDBOX_SLURM=$SLURM
SANDBOX_LUSTRE=$SANDBOX_DIR/lustre
SANDBOX_SSHD_LOGS=$SANDBOX_DIR/log/sshd-login1.log,$SANDBOX_DIR/log/sshd-login2.log
ENV
  give_to_caller "$SANDBOX_DIR/env"
}

# Ends on a signal, and when another process has taken the sandbox down.
sandbox_stay() {
  trap 'sandbox_down; exit 0' TERM INT
  while alive munged; do
    sleep 5 &
    wait $! || true
  done
}

sandbox_down() {
  [[ -d $SANDBOX_DIR ]] || return 0
  lock
  install -d "$SANDBOX_DIR/run"
  processes_forget_stale
  if instance_load; then faults_undo_all; fi
  # Clients before their servers, for what they have yet to write.
  stop_all "${LOGIN_HOSTS[@]/#/sshd-}" "${NODES[@]/#/slurmd-}"
  stop_all slurmctld postgres
  stop_all slurmdbd
  stop_all mariadbd munged
  disks_down
  if instance_load; then network_down; fi
  say 'down'
}

sandbox_reset() {
  [[ -d $SANDBOX_DIR ]] || return 0
  # Whatever SANDBOX_DIR names, delete only what `up` has made.
  [[ -e $SANDBOX_DIR/instance || -e $SANDBOX_DIR/lock ]] ||
    die "$SANDBOX_DIR is not a sandbox directory, so it is not deleted"
  sandbox_down
  if instance_load; then instance_release; fi
  rm -rf --one-file-system "$SANDBOX_DIR"
  say "deleted $SANDBOX_DIR"
}

sandbox_shell() {
  local machine=${1:-login1} user=root name
  (($# == 0)) || shift
  case $machine in
  login[12]) name=sshd-$machine user=$LOGIN_USER ;;
  ctl) name=slurmctld ;;
  node0[1-4] | cpu0[12]) name=slurmd-$machine ;;
  *) misuse "no such machine: $machine" ;;
  esac
  (($#)) || set -- bash -l
  [[ $user == root ]] ||
    set -- setpriv "--reuid=$user" "--regid=$user" --init-groups \
      env "--chdir=/home/$user" "HOME=/home/$user" "USER=$user" "LOGNAME=$user" "$@"
  inside "$name" "$@"
}
