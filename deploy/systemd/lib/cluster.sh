# shellcheck shell=bash disable=SC2154 # `work` and `sandbox` are the caller's
# Jobs for the service, and their files on the cluster. Each job writes a file that no other job writes.

# The directory of this trial.
readonly SCENE=systemd-trial-$$
readonly WORD=a-word-that-only-the-job-is-told
declare -A jobs=()

cluster_prepare() {
    scene=$sandbox/lustre/$SCENE
    install -d -m 1777 "$scene"
    touch "$scene/hold"
}

# job_text NAME RESOURCES PARTITION [held]: prints the request. A held job runs until cluster_release.
job_text() {
    local name=$1 resources=$2 partition=$3 file=/lustre/$SCENE/$1 wait=:
    [[ ${4:-} != held ]] || wait="while [ -e /lustre/$SCENE/hold ]; do sleep 0.2; done"
    jq -n --arg name "systemd trial: $name" --arg partition "$partition" --arg word "$WORD" --arg command \
        "echo begin \$SLURM_JOB_ID >> $file; $wait; echo end \$SLURM_JOB_ID \$TRIAL_WORD >> $file" \
        "{name: \$name, command: \$command, resources: {time_hours: 0.5, $resources},
          secret_env_vars: {TRIAL_WORD: \$word},
          backend_details: {backend_type: \"slurm\", partition: \$partition}}"
}

# Takes the arguments of job_text.
job_submit() {
    local name=$1
    job_text "$@" >"$machine/root/$name.json"
    jobs[$name]=$(in_machine tao-slurm submit "/root/$name.json")
    note "$name is ${jobs[$name]}"
}

# job_is NAME CONDITION: a jq expression about the job's status document.
job_is() { in_machine tao-slurm status "${jobs[$1]}" -o json 2>/dev/null | jq --exit-status "$2" >/dev/null; }

# job_comes_to SECONDS NAME CONDITION: waits so long, unless the job ends in Error. Prints the job's status if it fails.
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
        in_machine tao-slurm attempts "${jobs[$2]}" -o json | jq --exit-status '.attempts | length == 1' >/dev/null
}

executed_once() {
    local written id
    written=$(cat "$scene/$1") || return 1
    id=$(sed -n '1s/^begin //p' <<<"$written")
    [[ $written == "begin $id"$'\n'"end $id $WORD" ]] || { note "it wrote: $written"; return 1; }
}

job_list() { in_machine tao-slurm list --limit 100 -o json | jq --raw-output '.jobs[].id' | sort; }
same_list() { [[ $(job_list) == "$1" ]]; }

cluster_release() { [[ -z ${scene:-} ]] || rm -f "$scene/hold"; }

# Removes the jobs' files. A job that is just ending may still write.
cluster_clear() {
    local id
    [[ -n ${scene:-} ]] || return 0
    await 10 rm -rf "$scene" 2>/dev/null
    for id in "${jobs[@]}"; do
        find "$sandbox/lustre/fsw" -depth -name "*$id*" -exec rm -rf {} + 2>/dev/null
    done
}
