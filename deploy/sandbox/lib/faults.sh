# shellcheck shell=bash
# Faults by name. An active fault has a file run/faults/NAME, which also stores what is needed to turn it off.

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

fault_description() {
  case $1 in
  *-dead) echo 'the node loses power; off boots it' ;;
  sbatch-killed) echo 'sbatch is killed after the controller accepts the job and before it prints the id' ;;
  *-stopped) echo 'stopped cleanly until off' ;;
  *-killed) echo 'killed with SIGKILL; down until off' ;;
  *-frozen) echo 'suspended with SIGSTOP: accepts connections but never answers' ;;
  slurmctld-slow) echo 'alternates 0.3 s running and 3 s suspended: every answer takes seconds' ;;
  slurmdbd-slow) echo 'alternates 0.3 s running and 6 s suspended: records are late' ;;
  *-cut) echo 'kills the open SSH connections; new ones work' ;;
  sshd-few-sessions) echo 'one session per connection, two concurrent logins' ;;
  login-noise) echo 'a banner, and a login shell that writes to stdout and stderr' ;;
  sbatch-slow) echo 'sbatch starts after 10 s' ;;
  sbatch-refuses) echo 'sbatch fails with: invalid account' ;;
  sbatch-rate-limited) echo 'sbatch fails with: rate limit exceeded' ;;
  job-dir-full) echo '/lustre is full on all machines' ;;
  files-late) echo 'login hosts see changes and new files on /lustre up to 8 s late' ;;
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
    [[ $'\n'$(fault_names)$'\n' == *$'\n'"$1"$'\n'* ]] || misuse "no such fault: $1; 'sandbox fault list' names them"
    [[ $2 == on || $2 == off ]] || misuse "a fault is set on or off, not: $2"
    faults_begin
    "fault_turn_$2" "$1"
    unlock
    ;;
  *) misuse 'fault takes a name and on or off, or list, or off-all' ;;
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
    printf '%-20s %-4s %s\n' "$name" "$state" "$(fault_description "$name")"
  done < <(fault_names)
}

fault_turn_on() {
  ! fault_is_on "$1" || return 0
  local daemon
  daemon=$(fault_daemon "$1")
  [[ -z $daemon ]] || alive "$daemon" || die "$daemon is not running; try: sandbox up"
  # Record the fault first, so that an interrupted one is turned off as well.
  : >"$FAULTS_DIR/$1"
  fault_begin "$1" "$daemon"
  # Cutting the connections has no duration.
  [[ $1 != *-cut ]] || rm -f "$FAULTS_DIR/$1"
}

fault_turn_off() {
  fault_is_on "$1" || return 0
  fault_undo "$1"
  # The fault is off only when what it stopped is back; after a failure the caller can retry.
  [[ -z $(fault_daemon "$1") ]] || : >"$FAULTS_DIR/$1"
  fault_mend "$1"
  rm -f "$FAULTS_DIR/$1"
}

# First the faults that suspend processes: the others need these processes.
faults_off_all() {
  local name on=()
  mapfile -t on < <(faults_on)
  for name in ${on[@]+"${on[@]}"}; do fault_undo "$name"; done
  for name in ${on[@]+"${on[@]}"}; do fault_mend "$name"; done
}

# In the order of the list, but nodes last, because they register with the controller.
faults_on() {
  local name later=()
  while read -r name; do
    fault_is_on "$name" || continue
    if [[ $name == *-dead ]]; then later+=("$name"); else printf '%s\n' "$name"; fi
  done < <(fault_names)
  ((${#later[@]} == 0)) || printf '%s\n' "${later[@]}"
}

# Turns off what prevents the sandbox from stopping.
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

# Turns the fault off without starting anything.
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

# Starts missing daemons and waits until they answer.
fault_mend() {
  case $1 in
  *-dead) node_boot "${1%-dead}" ;;
  slurmctld-*)
    slurmctld_up
    await_daemon slurmctld 30 inside munged scontrol ping
    ;;
  slurmdbd-*)
    slurmdbd_up
    # A controller that was killed before it saved its state, and started without slurmdbd, has exited.
    alive slurmctld || ! slurmctld_is_wanted || fault_mend slurmctld-killed
    ;;
  login?-*) login_up "${1%%-*}" ;;
  postgres-*) postgres_up ;;
  sshd-few-sessions | login-noise) login_reload ;;
  esac
}

slurmctld_is_wanted() { [[ ! -e $FAULTS_DIR/slurmctld-killed && ! -e $FAULTS_DIR/slurmctld-stopped ]]; }

# The daemon of a fault, if it has one.
fault_daemon() {
  case $1 in
  *-dead) printf 'slurmd-%s' "${1%-dead}" ;;
  login?-*) printf 'sshd-%s' "${1%%-*}" ;;
  slurmctld-* | slurmdbd-* | postgres-*) printf '%s' "${1%%-*}" ;;
  esac
}
