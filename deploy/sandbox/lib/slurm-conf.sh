# shellcheck shell=bash
# The configuration files of Slurm, mounted at /etc/slurm on every machine.

slurm_conf_write() {
  local conf=$SANDBOX_DIR/etc/slurm
  {
    slurm_conf_controller
    slurm_conf_limits
    slurm_conf_scheduling
    slurm_conf_nodes
    slurm_conf_partitions
  } | replace "$conf/slurm.conf"
  replace "$conf/gres.conf" <<CONF
NodeName=$(joined "${GPU_NODES[@]}") Name=gpu File=$VIEW/dev/gpu[0-7]
CONF
  replace "$conf/plugstack.conf" <<CONF
required $VIEW/bin/spank_pyxis.so runtime_path=/tmp/pyxis
CONF
  slurmdbd_conf | replace "$conf/slurmdbd.conf"
  chown "$(ids slurm)" "$conf/slurmdbd.conf"
  chmod 600 "$conf/slurmdbd.conf"
}

joined() {
  local IFS=,
  printf '%s' "$*"
}

slurm_conf_controller() {
  # A requeued job waits for cred_expire plus one second; the default is 120.
  # NoInAddrAny keeps each daemon on the address of its own host name.
  cat <<CONF
ClusterName=$CLUSTER
SlurmctldHost=ctl
SlurmctldPort=$SLURMCTLD_PORT
SlurmUser=slurm
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=cred_expire=5
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation=$VIEW/state/slurm
SlurmdSpoolDir=$VIEW/spool/%n
SlurmctldPidFile=$VIEW/run/slurm/slurmctld.pid
SlurmdPidFile=$VIEW/run/slurm/slurmd-%n.pid
SlurmctldLogFile=$VIEW/log/slurm/slurmctld.log
SlurmdLogFile=$VIEW/log/slurm/slurmd-%n.log
$(fault_is_on slurmctld-few-requests || printf 'SlurmctldDebug=info')
SlurmdDebug=info
RebootProgram=/bin/true
TreeWidth=65533
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=ctl
AccountingStoragePort=$SLURMDBD_PORT
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=associations,limits,qos
AccountingStoreFlags=job_comment,job_script,job_env
CONF
}

# Slurm reads the limit only when the controller starts. The log then has a line for each request.
slurm_conf_limits() {
  local bucket rate period
  fault_is_on slurmctld-few-requests || return 0
  IFS=: read -r bucket rate period <<<"$SANDBOX_FEW_REQUESTS"
  printf 'SlurmctldParameters=rl_enable,rl_bucket_size=%s,rl_refill_rate=%s,rl_refill_period=%s\n' "$bucket" "$rate" "$period"
  printf 'SlurmctldDebug=debug3\n'
}

slurm_conf_scheduling() {
  # No cgroups: the sandbox must not depend on how the host mounts them.
  cat <<CONF
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=2
JobAcctGatherParams=OverMemoryKill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
PrologFlags=Alloc
MinJobAge=$SANDBOX_MIN_JOB_AGE
MaxJobCount=50000
MaxArraySize=10001
JobRequeue=1
EnforcePartLimits=ALL
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2,bf_continue,default_queue_depth=1000,bf_max_job_test=1000,max_switch_wait=1
PriorityType=priority/basic
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=10
InactiveLimit=0
KillWait=5
CompleteWait=0
UnkillableStepTimeout=50
BatchStartTimeout=10
MessageTimeout=10
TCPTimeout=5
ResumeTimeout=15
CONF
}

slurm_conf_nodes() {
  local node
  # The machine has fewer CPUs and less memory than its nodes claim to have.
  printf 'SlurmdParameters=config_overrides\n'
  printf 'NodeName=DEFAULT CPUs=64 Boards=1 SocketsPerBoard=2 CoresPerSocket=32 ThreadsPerCore=1 State=UNKNOWN\n'
  for node in "${GPU_NODES[@]}"; do
    printf 'NodeName=%s NodeAddr=%s RealMemory=512000 Gres=gpu:8 Feature=gpu\n' \
      "$node" "$(node_addr "$node")"
  done
  for node in "${CPU_NODES[@]}"; do
    printf 'NodeName=%s NodeAddr=%s RealMemory=256000 Feature=cpu\n' \
      "$node" "$(node_addr "$node")"
  done
}

slurm_conf_partitions() {
  local gpu cpu
  gpu=$(joined "${GPU_NODES[@]}") cpu=$(joined "${CPU_NODES[@]}")
  cat <<CONF
PartitionName=DEFAULT State=UP OverSubscribe=NO DefMemPerCPU=100 PriorityTier=10
PartitionName=polar Nodes=$gpu MaxTime=04:00:00 DefaultTime=04:00:00 Default=YES
PartitionName=polar3 Nodes=$gpu MaxTime=04:00:00 DefaultTime=04:00:00
PartitionName=polar4 Nodes=$gpu MaxTime=04:00:00 DefaultTime=04:00:00
PartitionName=grizzly Nodes=$gpu MaxTime=04:00:00 DefaultTime=04:00:00
PartitionName=cpu Nodes=$cpu MaxTime=1-00:00:00 DefaultTime=04:00:00
PartitionName=long Nodes=$gpu MaxTime=7-00:00:00 DefaultTime=1-00:00:00
PartitionName=scavenge Nodes=$gpu MaxTime=04:00:00 DefaultTime=01:00:00 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=forfeit Nodes=$gpu MaxTime=04:00:00 DefaultTime=01:00:00 PriorityTier=1 PreemptMode=CANCEL
CONF
}

slurmdbd_conf() {
  cat <<CONF
AuthType=auth/munge
DbdHost=ctl
DbdPort=$SLURMDBD_PORT
SlurmUser=slurm
PidFile=$VIEW/run/slurm/slurmdbd.pid
LogFile=$VIEW/log/slurm/slurmdbd.log
DebugLevel=info
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_acct
CONF
}
