# shellcheck shell=bash disable=SC2034,SC2154 # the caller sets `work` and `sandbox` and uses `from_name`
# The two programs: of the earlier commit and of this tree. Each is installed where the document says.

# The sources of the program.
readonly SOURCES=('crates/*/src/*' migrations Cargo.toml Cargo.lock rust-toolchain.toml)

# FROM, or the newest commit whose sources differ from this tree's: usually the previous commit, unless it changed only documents.
programs_choose() {
    local from=${FROM:-HEAD}
    if [[ -z ${FROM:-} ]] && git diff --quiet HEAD -- "${SOURCES[@]}"; then
        from=$(git log -1 --format=%H -- "${SOURCES[@]}")~1
    fi
    from_commit=$(git rev-parse --verify --quiet "$from^{commit}") ||
        die "no such commit: $from; a shallow clone has no earlier commit"
    from_name=$(git log -1 --format='%h (%cs)' "$from_commit")
}

# Each has its own target directory. In a shared one cargo could reuse the other's build: it identifies crates by their path in the
# clone, and detects changes by file dates.
programs_build() {
    local profile=${PROFILE:-release} built
    built=${profile/#dev/debug}/tao-slurm
    if [[ $(cat "$work/before.commit" 2>/dev/null) != "$from_commit" ]]; then
        rm -rf "$work/before" "$work/before.commit"
        mkdir -p "$work/before"
        # With today's dates, which are later than those of an earlier build.
        git archive "$from_commit" | tar -x -m -C "$work/before"
        echo "$from_commit" >"$work/before.commit"
    fi
    (cd "$work/before" && cargo build --locked --package tao-slurm --profile "$profile" --target-dir "$work/target")
    cargo build --locked --package tao-slurm --profile "$profile" --target-dir target
    install -m 755 "$work/target/$built" "$work/program.before"
    install -m 755 "target/$built" "$work/program.after"
}

# programs_place before|after: creates the parts of the operator's clone that the document mentions.
programs_place() {
    local tree=.
    [[ $1 == after ]] || tree=$work/before
    rm -rf "$work/clone"/*
    mkdir -p "$work/clone/deploy" "$work/clone/target/release"
    cp -a "$tree/deploy/systemd" "$tree/deploy/config.example.toml" "$work/clone/deploy"
    cp "$work/program.$1" "$work/clone/target/release/tao-slurm"
    # Files that the operator has from elsewhere.
    install -m 600 "$sandbox/ssh/id_ed25519" "$work/clone/KEY"
    install -m 644 "$sandbox/ssh/known_hosts" "$work/clone/KNOWN_HOSTS"
}
