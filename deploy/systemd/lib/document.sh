# shellcheck shell=bash disable=SC2154 # `work`, `sandbox` and `machine` are others'
# The commands of the document, and the steps that it leaves to the reader.

readonly DOCUMENT=docs/operations/deployment.md SECTION='## With systemd'
# The shell blocks of the section, in order.
readonly BLOCKS=(database install start token upgrade)

# Prints each line of a shell block of the section, after the number of its block.
document_lines() {
    awk -v section="$SECTION" '
        /^## / { inside = $0 == section }
        inside && /^```/ { open = !open; block += open; next }
        inside && open { print block "\t" $0 }' "$DOCUMENT"
}

# document_run NAME: runs the block in the clone on the machine, with the reader's values filled in. The output is in `said`.
document_run() {
    local i block=0 commands
    for i in "${!BLOCKS[@]}"; do
        [[ ${BLOCKS[i]} != "$1" ]] || block=$((i + 1))
    done
    [[ $(document_lines | cut -f1 | sort -u | wc -l) == "${#BLOCKS[@]}" ]] ||
        die "the section of $DOCUMENT does not have exactly these blocks of commands: ${BLOCKS[*]}"
    commands=$(document_lines | sed -n "s/^$block\t//p" | sed 's/PASSWORD/only-for-the-trial/')
    printf '%s\n' "$commands" | sed 's/^/   # /' >&2
    in_machine bash -euo pipefail -c "$commands" >"$work/said" 2>"$work/said.aside" || {
        cat "$work/said" "$work/said.aside" >&2
        die "the commands of the document failed: $1"
    }
}

# Edits [[clusters]] of the example for the sandbox, as its comments explain.
operator_configures() {
    (
        # shellcheck source=/dev/null
        . "$sandbox/env"
        sed -i -E -e "/^\[\[clusters\]\]/,\$ {
            s|^name = .*|name = \"sandbox\"|
            s|^user = .*|user = \"$SLURM_USER\"|
            s|^hosts = .*|hosts = [\"${SLURM_HOSTNAME//,/\", \"}\"]|
            s|^# key_path = |key_path = |
            s|^# account = .*|account = \"$SLURM_ACCOUNT\"|
            s|^# base_results_dir = .*|base_results_dir = \"$SLURM_BASE_RESULTS_DIR\"|
        }" "$machine/etc/tao-slurm/tao-slurm.toml"
    )
}
