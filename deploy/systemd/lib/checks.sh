# shellcheck shell=bash disable=SC2154 # the caller sets `work` and `from_name`
# The checks, their results, and the summary.

readonly UNITS=(tao-slurm-api tao-slurm-worker)
seen=()
failures=0
declare -A starts=()

note() { printf '   %s\n' "$*" >&2; }

# check WORDS COMMAND...: a failed check does not stop the trial; the summary lists it.
check() {
    local words=$1
    shift
    if "$@"; then
        seen+=("ok    $words")
    else
        seen+=("FAIL  $words")
        failures=$((failures + 1))
    fi
    note "${seen[-1]}"
}

# await SECONDS COMMAND...: repeats the command until it succeeds.
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

both_ready() {
    in_network curl -fsS --max-time 10 -o /dev/null http://127.0.0.1:8080/readyz 2>/dev/null &&
        in_network curl -fsS --max-time 10 -o /dev/null http://127.0.0.1:8081/readyz 2>/dev/null
}

# both_run before|after: compares the running programs with the built one.
both_run() {
    local unit
    for unit in "${UNITS[@]}"; do
        # shellcheck disable=SC2016 # expanded by the inner shell
        in_machine bash -c 'cat "/proc/$(systemctl show --property=MainPID --value "$1")/exe"' bash "$unit" | cmp --silent - "$work/program.$1" || return 1
    done
}

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
    if ((failures)); then
        printf '   %s\n' "${seen[@]}" | grep FAIL >&2
        die "$failures of ${#seen[@]} checks failed, from $from_name to this tree; the journal of the machine is $work/journal.log"
    fi
    note "All ${#seen[@]} checks passed, from $from_name to this tree."
    ! cmp --silent "$work/program.before" "$work/program.after" || note "But both programs are identical; select another commit with FROM=."
}
