# shellcheck shell=bash disable=SC2154 # `work`, `sandbox` and `machine` are others'
# The commands of the documents, and the steps that they leave to the reader.

# The shell blocks of each section, in order.
readonly SECTIONS=(
    'deployment.md|## With systemd|database install start token upgrade'
    'deployment.md|## TLS in front of the API|proxy'
    'backup-and-upgrades.md|### Your own Postgres|backup restore'
    'backup-and-upgrades.md|## Go back|back'
)

# document_lines FILE SECTION: prints each line of a shell block of the section, after the number of its block.
document_lines() {
    awk -v section="$2" '
        /^##+ / { inside = $0 == section }
        inside && /^```/ { open = !open; block += open; next }
        inside && open { print block "\t" $0 }' "docs/operations/$1"
}

# document_commands NAME: prints the block, with the reader's values filled in.
document_commands() {
    local entry file section names name block=0
    for entry in "${SECTIONS[@]}"; do
        IFS='|' read -r file section names <<<"$entry"
        [[ " $names " == *" $1 "* ]] || continue
        [[ $(document_lines "$file" "$section" | cut -f1 | sort -u | wc -l) == "$(wc -w <<<"$names")" ]] ||
            die "\"$section\" of $file does not have exactly these blocks of commands: $names"
        for name in $names; do
            block=$((block + 1))
            [[ $name != "$1" ]] || document_lines "$file" "$section" | sed -n "s/^$block\t//p" |
                sed "s/PASSWORD/only-for-the-trial/; s|NEWEST|$NEWER_PROGRAM|; s/VERSION/$schema/"
        done
        return
    done
    die "no document has the commands: $1"
}

# document_try NAME: runs the block in the clone on the machine. The output is in `said` and `said.aside`.
document_try() {
    local commands
    commands=$(document_commands "$1") || exit 1
    printf '%s\n' "$commands" | sed 's/^/   # /' >&2
    in_machine bash -euo pipefail -c "$commands" >"$work/said" 2>"$work/said.aside"
}

document_run() {
    document_try "$1" || {
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
