# shellcheck shell=bash
# Processes that die, freeze and stutter.

# Kills a daemon and everything of its machine without warning. Processes that the daemon has forked end on their own; wait for them,
# because a new daemon must not meet them.
power_off() {
  local name=$1 pid children=()
  if pid=$(running "$name.holder"); then
    kill -KILL "$pid" 2>/dev/null || true
    await 30 gone "$name.holder" || die "$name (pid $pid) cannot be killed"
  elif pid=$(running "$name.pid"); then
    mapfile -t children < <(tree "$pid")
    kill -KILL "$pid" 2>/dev/null || true
    await 10 all_gone "${children[@]}" || kill_those "${children[@]}"
  fi
  await 30 gone "$name.pid" || die "$name cannot be killed"
  rm -f "$SANDBOX_DIR/run/$name".{pid,holder}
}

# tree PID: "pid start-time" of it and of all below it, parents first.
tree() {
  local pid found=("$1")
  while ((${#found[@]})); do
    pid=${found[0]}
    found=("${found[@]:1}")
    printf '%s %s\n' "$pid" "$(start_time "$pid")"
    mapfile -t -O "${#found[@]}" found < <(pgrep -P "$pid")
  done
}

all_gone() {
  local one
  for one in "$@"; do
    [[ $(start_time "${one% *}") != "${one#* }" ]] || return 1
  done
}

kill_those() {
  local one
  for one in "$@"; do
    [[ $(start_time "${one% *}") != "${one#* }" ]] || kill -KILL "${one% *}" 2>/dev/null || true
  done
}

# Stops a daemon and all below it, those of other hosts' namespaces too; prints "pid start-time" of each.
freeze() {
  local pid found
  found=("$(running "$1.pid")")
  # Parents first: then there are no new children.
  while ((${#found[@]})); do
    pid=${found[0]}
    found=("${found[@]:1}")
    kill -STOP "$pid" 2>/dev/null || continue
    printf '%s %s\n' "$pid" "$(start_time "$pid")"
    mapfile -t -O "${#found[@]}" found < <(pgrep -P "$pid")
  done
}

# Continues exactly the processes on standard input.
thaw() {
  local pid started
  while read -r pid started; do
    [[ -z $started || $(start_time "$pid") != "$started" ]] || kill -CONT "$pid" 2>/dev/null || true
  done
}

# stutter NAME STOPPED RUNNING: seconds of each, in turns, until stutter_end.
stutter() {
  local record=$SANDBOX_DIR/run/stutter-$1.pid
  setsid "$HERE/lib/stutter" "$(running "$1.pid")" "$2" "$3" </dev/null >/dev/null 2>&1 {LOCK}>&- &
  printf '%s %s\n' $! "$(start_time $!)" >"$record"
  disown
}

stutter_end() {
  local pid
  if pid=$(running "stutter-$1.pid"); then kill -KILL "$pid" 2>/dev/null || true; fi
  rm -f "$SANDBOX_DIR/run/stutter-$1.pid"
  if pid=$(running "$1.pid"); then kill -CONT "$pid" 2>/dev/null || true; fi
}
