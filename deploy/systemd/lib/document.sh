# shellcheck shell=bash disable=SC2154 # other parts set `work`, `sandbox` and `machine`
# The commands of the document, and the parts that its reader fills in.

readonly DOCUMENT=docs/operations.md SECTION='## With systemd'
# The names of the section's shell blocks, in order.
readonly BLOCKS=(database install start token upgrade)

# Prints each line of the section's shell blocks, prefixed with the number of its block.
document_lines() {
    awk -v section="$SECTION" '
        /^## / { inside = $0 == section }
        inside && /^```/ { open = !open; block += open; next }
        inside && open { print block "\t" $0 }' "$DOCUMENT"
}

# document_run NAME: runs the commands of a block in the clone on the machine, with the reader's values filled in. Their output is
# in `said`.
document_run() {
    local i wanted=0 commands
    for i in "${!BLOCKS[@]}"; do
        [[ ${BLOCKS[i]} != "$1" ]] || wanted=$((i + 1))
    done
    [[ $(document_lines | cut -f1 | sort -u | wc -l) == "${#BLOCKS[@]}" ]] ||
        die "the section of $DOCUMENT has other command blocks than these: ${BLOCKS[*]}"
    commands=$(document_lines | sed -n "s/^$wanted\t//p" | sed 's/PASSWORD/only-for-the-trial/')
    printf '%s\n' "$commands" | sed 's/^/   # /' >&2
    in_machine bash -euo pipefail -c "$commands" >"$work/said" 2>"$work/said.aside" || {
        cat "$work/said" "$work/said.aside" >&2
        die "the commands of the document failed: block $1"
    }
}

# Edits the example's [[clusters]] for the sandbox, as its comments explain.
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
