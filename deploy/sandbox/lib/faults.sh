# shellcheck shell=bash
# Faults by name. An active fault has a file run/faults/NAME with the data that its end needs.

readonly FAULTS_DIR=$SANDBOX_DIR/run/faults

fault_names() {
  local node host daemon
  for node in "${NODES[@]}"; do printf '%s-dead\n' "$node"; done
  for daemon in slurmctld slurmdbd; do
    printf '%s\n' "$daemon"-{stopped,killed,frozen,slow}
  done
  printf 'slurmctld-few-requests\n'
  for host in "${LOGIN_HOSTS[@]}"; do printf '%s\n' "$host"-{stopped,frozen,cut}; done
  printf '%s\n' sshd-few-sessions login-noise sbatch-{slow,killed,refuses,rate-limited} \
    job-dir-full files-late postgres-{stopped,killed}
}

fault_effect() {
  case $1 in
  *-dead) echo 'the node loses power; off boots it' ;;
  sbatch-killed) echo 'sbatch is killed when the controller has the job and before it prints its id' ;;
  *-stopped) echo 'stopped cleanly until off' ;;
  *-killed) echo 'killed by SIGKILL; down until off' ;;
  *-frozen) echo 'frozen by SIGSTOP: connections open and get no answer' ;;
  slurmctld-few-requests) echo "limits the requests of a user (BUCKET:RATE:PERIOD = $SANDBOX_FEW_REQUESTS), from 23.02 on" ;;
  slurmctld-slow) echo 'runs for 0.3 s, then not for 3 s, and so on: every answer takes seconds' ;;
  slurmdbd-slow) echo 'runs for 0.3 s, then not for 6 s, and so on: records come late' ;;
  *-cut) echo 'kills the open SSH connections; new ones work' ;;
  sshd-few-sessions) echo 'one session a connection, and two connections that log in at a time' ;;
  login-noise) echo 'a banner, and a shell that talks on both streams when it starts' ;;
  sbatch-slow) echo 'sbatch begins after 10 s' ;;
  sbatch-refuses) echo 'sbatch says that the account is wrong' ;;
  sbatch-rate-limited) echo 'sbatch says that the controller has no time' ;;
  job-dir-full) echo '/lustre has no block left, on all machines' ;;
  files-late) echo 'login hosts see a change of /lustre, or a new file they have looked for, up to 8 s late' ;;
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
  # Record the fault first, so that an interrupted one is undone too.
  : >"$FAULTS_DIR/$1"
  fault_begin "$1" "$daemon"
  # Cutting connections is all.
  [[ $1 != *-cut ]] || rm -f "$FAULTS_DIR/$1"
}

fault_turn_off() {
  fault_is_on "$1" || return 0
  fault_undo "$1"
  # The fault ends only when the stopped part works again, so that a caller can retry.
  [[ -z $(fault_daemon "$1") ]] || : >"$FAULTS_DIR/$1"
  fault_mend "$1"
  rm -f "$FAULTS_DIR/$1"
}

# Continue frozen processes first: the others need them.
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
  slurmctld-few-requests) slurmctld_reconfigure ;;
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
  [[ $name != slurmctld-few-requests ]] || slurmctld_stop_reconfigured
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
    # A controller that was killed before it saved its state, and started without slurmdbd, has given up.
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
