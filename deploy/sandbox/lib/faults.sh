# shellcheck shell=bash
# Faults by name. An active fault has a file run/faults/NAME, which also holds the data for ending it.

readonly FAULTS_DIR=$SANDBOX_DIR/run/faults

fault_names() {
  local node host daemon
  for node in "${NODES[@]}"; do printf '%s-dead\n' "$node"; done
  for daemon in slurmctld slurmdbd; do
    printf '%s\n' "$daemon"-{stopped,killed,frozen,slow}
  done
  for host in "${LOGIN_HOSTS[@]}"; do printf '%s\n' "$host"-{stopped,frozen,cut}; done
  printf '%s\n' sshd-few-sessions login-noise sbatch-{slow,killed,refuses,rate-limited} \
    job-dir-full files-late postgres-{stopped,killed}
}

fault_effect() {
  case $1 in
  *-dead) echo 'the node loses power; off boots it' ;;
  sbatch-killed) echo 'sbatch is killed after the controller has the job, before it prints the ID' ;;
  *-stopped) echo 'shut down cleanly, and not running until off' ;;
  *-killed) echo 'killed with SIGKILL, and not running until off' ;;
  *-frozen) echo 'all its processes stopped with SIGSTOP: connections are accepted but not answered' ;;
  slurmctld-slow) echo 'alternates 0.3 s running and 3 s stopped: each response takes seconds' ;;
  slurmdbd-slow) echo 'alternates 0.3 s running and 6 s stopped: records arrive late' ;;
  *-cut) echo 'kills the open SSH connections; new ones work' ;;
  sshd-few-sessions) echo 'one session per connection, and two concurrent logins' ;;
  login-noise) echo 'a login banner, and a shell that prints to stdout and stderr when it starts' ;;
  sbatch-slow) echo 'sbatch starts after 10 s' ;;
  sbatch-refuses) echo 'sbatch fails with an invalid account' ;;
  sbatch-rate-limited) echo 'sbatch fails because the controller is busy' ;;
  job-dir-full) echo '/lustre is full, on all machines' ;;
  files-late) echo 'login hosts see changes of /lustre, and new files that they looked for before, up to 8 s late' ;;
  esac
}

fault_is_on() { [[ -e $FAULTS_DIR/$1 ]]; }

sandbox_fault() {
  case $#,${1-} in
  1,list) faults_list ;;
  1,off-all)
    faults_begin
    faults_off_all
    unlock
    ;;
  2,*)
    [[ $'\n'$(fault_names)$'\n' == *$'\n'"$1"$'\n'* ]] || misuse "unknown fault: $1; see 'sandbox fault list'"
    [[ $2 == on || $2 == off ]] || misuse "the state of a fault is on or off, not: $2"
    faults_begin
    "fault_turn_$2" "$1"
    unlock
    ;;
  *) misuse 'usage: fault NAME on|off, fault list, or fault off-all' ;;
  esac
}

faults_begin() {
  instance_load || die "no sandbox in $SANDBOX_DIR; start one with: sandbox up"
  lock
  processes_forget_stale
  install -d "$FAULTS_DIR"
}

faults_list() {
  local name state
  while read -r name; do
    state=off
    ! fault_is_on "$name" || state=on
    printf '%-20s %-4s %s\n' "$name" "$state" "$(fault_effect "$name")"
  done < <(fault_names)
}

fault_turn_on() {
  ! fault_is_on "$1" || return 0
  local daemon
  daemon=$(fault_daemon "$1")
  [[ -z $daemon ]] || alive "$daemon" || die "$daemon is not running; try: sandbox up"
  # Recorded first, so that an interrupted start is undone, too.
  : >"$FAULTS_DIR/$1"
  fault_begin "$1" "$daemon"
  # Cut connections need no end.
  [[ $1 != *-cut ]] || rm -f "$FAULTS_DIR/$1"
}

fault_turn_off() {
  fault_is_on "$1" || return 0
  fault_undo "$1"
  # The fault stays recorded until its daemon runs again, so that a failed restart is repeated.
  [[ -z $(fault_daemon "$1") ]] || : >"$FAULTS_DIR/$1"
  fault_mend "$1"
  rm -f "$FAULTS_DIR/$1"
}

# First continue all frozen processes, because the other steps talk to them.
faults_off_all() {
  local name on=()
  mapfile -t on < <(faults_on)
  for name in ${on[@]+"${on[@]}"}; do fault_undo "$name"; done
  for name in ${on[@]+"${on[@]}"}; do fault_mend "$name"; done
}

# In the order of the list, with nodes last: they register with the controller.
faults_on() {
  local name later=()
  while read -r name; do
    fault_is_on "$name" || continue
    if [[ $name == *-dead ]]; then later+=("$name"); else printf '%s\n' "$name"; fi
  done < <(fault_names)
  ((${#later[@]} == 0)) || printf '%s\n' "${later[@]}"
}

# Enough for a sandbox that is about to stop.
faults_undo_all() {
  local name
  while read -r name; do fault_undo "$name"; done < <(faults_on)
}

fault_begin() {
  local name=$1 daemon=$2
  case $name in
  *-dead) power_off "$daemon" ;;
  sbatch-*) sbatch_wrapper_update ;;
  *-stopped) stop "$daemon" ;;
  *-killed) power_off "$daemon" ;;
  *-frozen) freeze "$daemon" >"$FAULTS_DIR/$name" ;;
  slurmctld-slow) stutter "$daemon" 3 0.3 ;;
  slurmdbd-slow) stutter "$daemon" 6 0.3 ;;
  *-cut) login_cut "$daemon" ;;
  sshd-few-sessions) login_reload ;;
  login-noise) login_noise_on ;;
  job-dir-full) lustre_fill ;;
  files-late) late_on ;;
  esac
}

# Ends the effect, without starting a daemon.
fault_undo() {
  local name=$1
  case $name in
  *-frozen) thaw <"$FAULTS_DIR/$name" ;;
  *-slow) [[ $name == sbatch-* ]] || stutter_end "$(fault_daemon "$name")" ;;
  login-noise) login_noise_off ;;
  job-dir-full) lustre_free ;;
  files-late) late_off ;;
  esac
  rm -f "$FAULTS_DIR/$name"
  [[ $name != sbatch-* ]] || sbatch_wrapper_update
}

# Starts the missing daemon, and waits until it responds.
fault_mend() {
  case $1 in
  *-dead) node_boot "${1%-dead}" ;;
  slurmctld-*)
    slurmctld_up
    await_daemon slurmctld 30 inside munged scontrol ping
    ;;
  slurmdbd-*)
    slurmdbd_up
    # A slurmctld that was killed before it had saved its state exits if it starts while slurmdbd is not running.
    alive slurmctld || ! slurmctld_is_wanted || fault_mend slurmctld-killed
    ;;
  login?-*) login_up "${1%%-*}" ;;
  postgres-*) postgres_up ;;
  sshd-few-sessions | login-noise) login_reload ;;
  esac
}

slurmctld_is_wanted() { [[ ! -e $FAULTS_DIR/slurmctld-killed && ! -e $FAULTS_DIR/slurmctld-stopped ]]; }

# The daemon that a fault affects, if any.
fault_daemon() {
  case $1 in
  *-dead) printf 'slurmd-%s' "${1%-dead}" ;;
  login?-*) printf 'sshd-%s' "${1%%-*}" ;;
  slurmctld-* | slurmdbd-* | postgres-*) printf '%s' "${1%%-*}" ;;
  esac
}
