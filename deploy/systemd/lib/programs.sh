# shellcheck shell=bash disable=SC2034,SC2154 # `work` and `sandbox` are the caller's, who says `from_name`
# The programs: `before` of the commit to upgrade from, `after` of this tree, and `newer` of this tree with one more migration, which
# exists for the trial only. Each goes where the document expects it.

# The sources of the program.
readonly SOURCES=('crates/*/src/*' migrations Cargo.toml Cargo.lock rust-toolchain.toml)

# The schema version of this tree.
schema=$(find migrations -name '*.up.sql' -printf '%f\n' | sort | tail -n 1 | cut -d_ -f1)
schema=$((10#$schema))
# Where the program of the made-up migration is on the machine.
readonly NEWER_PROGRAM=/opt/newer/tao-slurm

# FROM, or the newest commit with another program than this tree's.
programs_choose() {
    local from=${FROM:-HEAD}
    if [[ -z ${FROM:-} ]] && git diff --quiet HEAD -- "${SOURCES[@]}"; then
        from=$(git log -1 --format=%H -- "${SOURCES[@]}")~1
    fi
    from_commit=$(git rev-parse --verify --quiet "$from^{commit}") ||
        die "no commit $from; a shallow clone has none to upgrade from"
    from_name=$(git log -1 --format='%h (%cs)' "$from_commit")
}

# Each has its own target directory. In a shared one cargo confuses the two, because it identifies crates by their path and changes by
# dates.
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
    install -m 755 "$work/target/$built" "$work/program.before"
    cargo build --locked --package tao-slurm --profile "$profile" --target-dir target
    install -m 755 "target/$built" "$work/program.after"
    programs_invent
    (cd "$work/newer" && cargo build --locked --package tao-slurm --profile "$profile" --target-dir "$work/target-newer")
    install -m 755 "$work/target-newer/$built" "$work/program.newer"
    grep --quiet trial_notes "$work/program.newer" || die "the newer program was not built with its migration"
}

# Copies this tree and adds the migration. The dates stay, so that cargo compiles only what has changed.
programs_invent() {
    local migration
    rm -rf "$work/newer"
    mkdir -p "$work/newer"
    git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
        [[ ! -e $file ]] || printf '%s\0' "$file"
    done | xargs -0 cp --parents --preserve=mode,timestamps,links --no-dereference -t "$work/newer"
    migration=$work/newer/migrations/$(printf %04d "$((schema + 1))")_trial_notes_min_$schema
    cat >"$migration.up.sql" <<<'alter table jobs add column trial_note text;
create table trial_notes (job uuid primary key references jobs (id) on delete cascade, note text not null);'
    cat >"$migration.down.sql" <<<'drop table trial_notes;
alter table jobs drop column trial_note;'
    touch -r deploy/systemd/lib/programs.sh "$migration".*.sql "$work/newer/migrations"
}

# programs_place before|after|newer: the part of the operator's clone that the document uses.
programs_place() {
    local tree=.
    [[ $1 != before ]] || tree=$work/before
    rm -rf "$work/clone"/*
    mkdir -p "$work/clone/deploy" "$work/clone/target/release"
    cp -a "$tree/deploy/systemd" "$tree/deploy/config.example.toml" deploy/haproxy "$work/clone/deploy"
    cp "$work/program.$1" "$work/clone/target/release/tao-slurm"
    # Files that the operator brings.
    install -m 600 "$sandbox/ssh/id_ed25519" "$work/clone/KEY"
    install -m 644 "$sandbox/ssh/known_hosts" "$work/clone/KNOWN_HOSTS"
    install -m 644 "$work/tls/certificate.pem" "$work/clone/CERTIFICATE"
    install -m 600 "$work/tls/key.pem" "$work/clone/CERTIFICATE_KEY"
}
