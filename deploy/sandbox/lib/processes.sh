# shellcheck shell=bash
# Starts daemons, and stops exactly those.
#
# A daemon records itself in run/NAME.pid as "PID STARTTIME" just before it becomes the daemon.
# A daemon that runs user processes also has a PID namespace; run/NAME.holder records the process
# whose end also ends that namespace with every job step or ssh session.

readonly CLUSTER_PATH=$VIEW/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# launch [--machine] [--netns NAME] [--host] NAME HOSTNAME COMMAND...; --host: on the host's root file system for every Slurm release.
launch() {
  local holder=no enter=() isolate=() tree=$ROOTFS
  while [[ $1 == --* ]]; do
    case $1 in
    --machine)
      holder=yes
      isolate=(--pid --fork --kill-child)
      shift
      ;;
    --host)
      tree=
      shift
      ;;
    --netns)
      enter=(nsenter "--net=/run/netns/$2" --)
      shift 2
      ;;
    esac
  done
  local name=$1
  rm -f "$SANDBOX_DIR/run/$name".{pid,holder}
  # Every program of this chain execs the next one, so $! is the daemon or its namespace's holder.
  # A clean environment: the caller's may point to another Slurm or database.
  setsid env -i "PATH=$CLUSTER_PATH" "LC_ALL=$LC_ALL" "SANDBOX_DIR=$SANDBOX_DIR" "VIEW=$VIEW" \
    "ROOTFS=$tree" "MACHINE_ROOT=$MACHINE_ROOT" "${enter[@]}" \
    unshare --mount --uts --propagation slave "${isolate[@]}" -- \
    "$HERE/lib/machine" "$@" </dev/null >"$SANDBOX_DIR/log/$name.out" 2>&1 {LOCK}>&- &
  if [[ $holder == yes ]]; then
    printf '%s %s\n' $! "$(start_time $!)" >"$SANDBOX_DIR/run/$name.holder"
  fi
  disown
}

# Field 22 of stat; the command name before it may contain blanks and brackets.
start_time() {
  local stat fields
  read -r stat 2>/dev/null <"/proc/$1/stat" || return 0
  read -ra fields <<<"${stat##*) }"
  # Process 1 may leave a dead child unreaped for seconds.
  [[ ${fields[0]} == [ZX] ]] || printf '%s' "${fields[19]}"
}

# running FILE: prints the recorded pid if that process still runs.
running() {
  local pid started
  read -r pid started 2>/dev/null <"$SANDBOX_DIR/run/$1" || return 1
  [[ -n $started && $(start_time "$pid") == "$started" ]] && printf '%s\n' "$pid"
}

alive() { running "$1.pid" >/dev/null; }

# stop NAME [SECONDS]: sends SIGTERM, waits, then sends SIGKILL.
stop() {
  local name=$1 patience=${2:-10} pid
  if pid=$(running "$name.pid"); then
    kill -TERM "$pid" 2>/dev/null || true
    # A suspended process would not receive the signal.
    kill -CONT "$pid" 2>/dev/null || true
    await "$patience" gone "$name.pid" || kill -KILL "$pid" 2>/dev/null || true
    await 30 gone "$name.pid" || die "$name (pid $pid) cannot be killed"
  fi
  if pid=$(running "$name.holder"); then
    kill -KILL "$pid" 2>/dev/null || true
    await 30 gone "$name.holder" || die "$name (pid $pid) cannot be killed"
  fi
  rm -f "$SANDBOX_DIR/run/$name".{pid,holder}
}

stop_all() {
  local name job jobs=()
  for name in "$@"; do
    stop "$name" &
    jobs+=($!)
  done
  for job in "${jobs[@]}"; do
    wait "$job" || exit 1
  done
}

gone() { ! running "$1" >/dev/null; }

# await SECONDS COMMAND...: polls until the command succeeds.
await() {
  local deadline=$((${EPOCHREALTIME/./} + $1 * 1000000))
  shift
  until "$@"; do
    ((${EPOCHREALTIME/./} < deadline)) || return 1
    sleep 0.05
  done
}

# await_daemon NAME SECONDS COMMAND...: like await, but fails at once if the daemon dies. The seconds are for an idle machine; a busy one
# gets six times as long.
await_daemon() {
  local name=$1 seconds=$2
  shift 2
  await 30 alive "$name" || daemon_failed "$name" 'did not start'
  await "$((6 * seconds))" answers_or_died "$name" "$@" || daemon_failed "$name" 'does not respond'
  alive "$name" || daemon_failed "$name" 'died'
}

answers_or_died() {
  local name=$1
  shift
  # In a subshell, because the command may exit with a message.
  ! alive "$name" || ("$@") >/dev/null 2>&1
}

daemon_failed() {
  tail -n 5 "$SANDBOX_DIR/log/$1.out" >&2 || true
  die "$1 $2; see its logs in $SANDBOX_DIR/log"
}

# inside NAME COMMAND...: runs a command in the namespaces of that daemon.
inside() {
  local name=$1 target
  shift
  target=$(running "$name.pid") || die "$name is not running; try: sandbox up"
  # nsenter's --wd is a directory outside, which is not reachable from another root.
  nsenter --target "$target" --mount --uts --net --pid -- \
    env -i --chdir=/ "PATH=$CLUSTER_PATH" "LC_ALL=$LC_ALL" "TERM=${TERM-dumb}" "$@"
}

# at_view COMMAND...: runs a command of the host with the sandbox mounted at the cluster's path.
at_view() {
  # shellcheck disable=SC2016 # expanded by the inner shell
  unshare --mount --propagation slave -- \
    bash -c 'mount --rbind "$0" "$1" && shift && exec "$@"' "$SANDBOX_DIR" "$VIEW" "$@"
}

# Pids from before a reboot are invalid.
processes_forget_stale() {
  local boot record=$SANDBOX_DIR/run/boot-id
  boot=$(</proc/sys/kernel/random/boot_id)
  [[ $(cat "$record" 2>/dev/null) != "$boot" ]] || return 0
  rm -f "$SANDBOX_DIR"/run/*.{pid,holder}
  printf '%s\n' "$boot" >"$record"
}
