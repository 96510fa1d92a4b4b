# shellcheck shell=bash disable=SC2154 # the caller sets `work` and `sandbox`
# The jobs of the trial and their records on the cluster: each job writes to its own file.

# The same directory on the cluster and on this machine.
readonly RUN_DIR=systemd-trial-$$
readonly SECRET=a-secret-that-only-the-job-gets
declare -A jobs=()

cluster_prepare() {
    run_dir=$sandbox/lustre/$RUN_DIR
    install -d -m 1777 "$run_dir"
    touch "$run_dir/hold"
}

# job_submit NAME RESOURCES PARTITION [held]: a held job runs until cluster_release.
job_submit() {
    local name=$1 resources=$2 partition=$3 file=/lustre/$RUN_DIR/$1 wait=:
    [[ ${4:-} != held ]] || wait="while [ -e /lustre/$RUN_DIR/hold ]; do sleep 0.2; done"
    jq -n --arg name "systemd trial: $name" --arg partition "$partition" --arg word "$SECRET" --arg command \
        "echo begin \$SLURM_JOB_ID >> $file; $wait; echo end \$SLURM_JOB_ID \$TRIAL_SECRET >> $file" \
        "{name: \$name, command: \$command, resources: {time_hours: 0.5, $resources},
          secret_env_vars: {TRIAL_SECRET: \$word},
          backend_details: {backend_type: \"slurm\", partition: \$partition}}" >"$machine/root/$name.json"
    jobs[$name]=$(in_machine tao-slurm submit "/root/$name.json")
    note "$name is ${jobs[$name]}"
}

# job_is NAME CONDITION: tests a jq condition on the job's document.
job_is() { in_machine tao-slurm status "${jobs[$1]}" --json 2>/dev/null | jq --exit-status "$2" >/dev/null; }

# job_comes_to SECONDS NAME CONDITION: waits for the condition, unless the job ends as Error. Prints its document on failure.
job_comes_to() {
    local until=$((SECONDS + $1)) name=$2 condition=$3
    until job_is "$name" "$condition"; do
        if ((SECONDS >= until)) || job_is "$name" '.status == "Error"'; then
            in_machine tao-slurm status "${jobs[$name]}" >&2 || true
            return 1
        fi
        sleep 0.5
    done
}

job_is_done() {
    job_comes_to "$1" "$2" '.status == "Done"' &&
        in_machine tao-slurm attempts "${jobs[$2]}" --json | jq --exit-status '.attempts | length == 1' >/dev/null
}

executed_once() {
    local written id
    written=$(cat "$run_dir/$1") || return 1
    id=$(sed -n '1s/^begin //p' <<<"$written")
    [[ $written == "begin $id"$'\n'"end $id $SECRET" ]] || { note "it wrote: $written"; return 1; }
}

job_list() { in_machine tao-slurm list --limit 100 --json | jq --raw-output '.jobs[].id' | sort; }
same_list() { [[ $(job_list) == "$1" ]]; }

cluster_release() { [[ -z ${run_dir:-} ]] || rm -f "$run_dir/hold"; }

# Removes the files of the jobs; a job that is just ending may still write.
cluster_clear() {
    local id
    [[ -n ${run_dir:-} ]] || return 0
    await 10 rm -rf "$run_dir" 2>/dev/null
    for id in "${jobs[@]}"; do
        find "$sandbox/lustre/fsw" -depth -name "*$id*" -exec rm -rf {} + 2>/dev/null
    done
}
