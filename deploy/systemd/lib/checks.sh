# shellcheck shell=bash disable=SC2154 # `work` and `from_name` are the caller's
# Checks, their results, and the summary.

readonly UNITS=(tao-slurm-api tao-slurm-worker)
seen=()
misses=0
declare -A starts=()

note() { printf '   %s\n' "$*" >&2; }

# check TEXT COMMAND...: a miss does not stop the trial; the summary counts it.
check() {
    local words=$1
    shift
    if "$@"; then
        seen+=("ok    $words")
    else
        seen+=("MISS  $words")
        misses=$((misses + 1))
    fi
    note "${seen[-1]}"
}

# await SECONDS COMMAND...: waits until the command succeeds.
await() {
    local until=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < until)) || return 1
        sleep 0.5
    done
}

units_run() {
    local unit
    for unit in tao-slurm-migrate "${UNITS[@]}"; do
        [[ $(in_machine systemctl show --property=ActiveState,NRestarts "$unit" | sort | paste -sd' ') == 'ActiveState=active NRestarts=0' ]] || return 1
    done
}

# ready PORT...: whether the processes with these ports are ready.
ready() {
    local port
    for port in "$@"; do
        in_network curl -fsS --max-time 10 -o /dev/null "http://127.0.0.1:$port/readyz" 2>/dev/null || return 1
    done
}
both_ready() { ready 8080 8081; }

# run_program before|after|newer UNIT...: compares the programs that the kernel has open.
run_program() {
    local name=$1 unit
    shift
    for unit in "$@"; do
        # shellcheck disable=SC2016 # for the shell in there
        in_machine bash -c 'cat "/proc/$(systemctl show --property=MainPID --value "$1")/exe"' bash "$unit" | cmp --silent - "$work/program.$name" || return 1
    done
}
both_run() { run_program "$1" "${UNITS[@]}"; }

start_of() { in_machine systemctl show --property=InvocationID --value "$1"; }

units_remember() {
    local unit
    for unit in "${UNITS[@]}"; do starts[$unit]=$(start_of "$unit"); done
}

units_are_new() {
    local unit
    for unit in "${UNITS[@]}"; do
        [[ $(start_of "$unit") != "${starts[$unit]}" ]] || return 1
    done
}

summary() {
    if ((misses)); then
        printf '   %s\n' "${seen[@]}" | grep MISS >&2
        die "$misses of ${#seen[@]} checks missed, from $from_name to this tree; the machine's journal is $work/journal.log"
    fi
    note "All ${#seen[@]} checks passed, from $from_name to this tree."
    ! cmp --silent "$work/program.before" "$work/program.after" || note "But both programs are identical: choose another commit with FROM=."
}
