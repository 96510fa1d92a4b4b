#!/bin/sh
# Simulates a TAO training: same command line and status file, no computation. The specs control what it does and
# how it fails; see "The test image" in the sandbox's README.
set -eu

usage() {
  echo "container_handler: error: $1" >&2
  exit 2
}

network='' action='' job='' specs='' env_vars='' metadata=''
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || usage "argument $1: expected one argument"
  case $1 in
  --neural-network-name) network=$2 ;;
  --action-name) action=$2 ;;
  --job-id) job=$2 ;;
  --specs-file) specs=$2 ;;
  --docker-env-vars-file) env_vars=$2 ;;
  --cloud-metadata-file) metadata=$2 ;;
  *) usage "unrecognized arguments: $1" ;;
  esac
  shift 2
done
for required in "$network" "$action" "$job" "$specs" "$env_vars" "$metadata"; do
  [ -n "$required" ] || usage 'the following arguments are required: --neural-network-name,
  --action-name, --job-id, --specs-file, --docker-env-vars-file, --cloud-metadata-file'
done

traceback() {
  cat >&2 <<TEXT
Traceback (most recent call last):
  File "/usr/local/lib/python3.12/runpy.py", line 198, in _run_module_as_main
  File "/opt/nvidia_tao_core/microservices/handlers/container_handler.py", line 1683, in <module>
$1
TEXT
}

# flat FILE: prints its content as "path<TAB>value" lines.
flat() {
  [ -r "$1" ] || {
    traceback "FileNotFoundError: [Errno 2] No such file or directory: '$1'"
    exit 1
  }
  awk -f /opt/sandbox/json.awk "$1" || {
    traceback "json.decoder.JSONDecodeError: $1 is not JSON"
    exit 1
  }
}
settings=$(flat "$specs")
variables=$(flat "$env_vars")
flat "$metadata" >/dev/null

# setting PATH DEFAULT: reads a setting from the specs, where it may be nested deeper.
setting() {
  printf '%s\n' "$settings" | awk -F '\t' -v path="$1" -v found="$2" '
    $1 == path || substr($1, length($1) - length(path)) == "." path { found = $2 }
    END { print found }'
}
variable() { printf '%s\n' "$variables" | awk -F '\t' -v name="$1" '$1 == name { print $2 }'; }

epochs=$(setting train.num_epochs 3)
epoch_seconds=$(setting sandbox.epoch_seconds 0.3)
held_at=$(setting sandbox.held_at_epoch 0)
fail=$(setting sandbox.fail none)
fail_at=$(setting sandbox.fail_at_epoch 1)
fail_attempts=$(setting sandbox.fail_attempts 0)
exit_code=$(setting sandbox.exit_code 1)
notes=$(setting sandbox.notes '')

results=${TAO_API_RESULTS_DIR:-$(variable TAO_API_RESULTS_DIR)}
[ -n "$results" ] || {
  traceback "KeyError: 'TAO_API_RESULTS_DIR'"
  exit 1
}
results=$results/$job
mkdir -p "$results"

rank=${NODE_RANK:-${SLURM_NODEID:-0}}
nodes=${SLURM_JOB_NUM_NODES:-1}
role=${COSMOS_NODE_ROLE:-}

# Only the first rank reports and saves, but all of them train. Of several roles, only the policy trains.
first() { [ "$rank" -eq 0 ] && [ "${role:-policy}" = policy ]; }
status() {
  first || return 0
  now=$(date '+%m/%d/%Y %H:%M:%S' | sed 's/\(^\|[/ :]\)0\([0-9]\)/\1\2/g')
  printf '{"date": "%s", "time": "%s", "status": "%s", "verbosity": "%s", "message": "%s"%s}\n' \
    "${now% *}" "${now#* }" "$1" "$2" "$3" "${4:+, $4}" >>"$results/status.json"
}

# The number of starts of this job, so that a test can make only the first ones fail.
attempt=1
if first; then
  [ ! -r "$results/.attempts" ] || attempt=$(($(cat "$results/.attempts") + 1))
  echo "$attempt" >"$results/.attempts"
fi
[ "$fail_attempts" -eq 0 ] || [ "$attempt" -le "$fail_attempts" ] || fail=none

# As with torch.distributed, all nodes first connect to the first node, which greets every other one. A node
# without a greeting connected between two calls of nc and retries.
rendezvous() {
  [ "$nodes" -gt 1 ] && [ -n "${MASTER_ADDR:-}" ] && [ -z "$role" ] || return 0
  address=$MASTER_ADDR:${MASTER_PORT:-29500} greeted=1 tries=0
  if [ "$rank" -eq 0 ]; then
    while [ "$greeted" -lt "$nodes" ]; do
      timeout 60 nc -l -p "${address##*:}" -e /bin/echo hello >/dev/null || no_rendezvous
      greeted=$((greeted + 1))
    done
  else
    until [ "$(nc -w 2 "$MASTER_ADDR" "${address##*:}" </dev/null 2>/dev/null)" = hello ]; do
      tries=$((tries + 1))
      [ "$tries" -lt 120 ] || no_rendezvous
      sleep 0.5
    done
  fi
  echo "rendezvous of $nodes nodes at $address: rank $rank is there"
}

no_rendezvous() {
  traceback "torch.distributed.DistNetworkError: rank $rank: no rendezvous at $address"
  exit 1
}

# The other roles run until the policy ends.
serve() {
  echo "role $role of $COSMOS_CONTROLLER_HOST on $SLURMD_NODENAME: policy on $POLICY_NODES, rollout on $ROLLOUT_NODES"
  [ "$role" = controller ] || [ "$role" = rollout ] || return 0
  until [ -e "$results/.policy_ended" ]; do sleep 0.2; done
  echo "role $role ends"
  exit 0
}

# Records each execution in a file of the caller, so that tests can count them. $1: event, $2: details.
note() {
  [ -z "$notes" ] || ! first || echo "$1 $SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0}${2:+ $2} $(date +%s)" >>"$notes"
}

misbehave() {
  case $fail in
  exit)
    traceback 'RuntimeError: Error(s) in loading state_dict for ClassificationModel'
    exit "$exit_code"
    ;;
  status_failure)
    status FAILURE ERROR "$action failed: dataset is empty"
    exit 0
    ;;
  silent) exit 0 ;;
  killed) kill -KILL $$ ;;
  oom_text)
    traceback 'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.05 GiB is free.'
    exit 1
    ;;
  esac
}

# After the epoch, because the shell handles a signal only when sleep has ended.
wait_to_be_stopped() {
  case $fail in
  hang) trap '' TERM ;;
  scancel) trap 'echo "Received SIGTERM, stopping" >&2; exit 143' TERM ;;
  *) return 0 ;;
  esac
  echo "epoch $epoch done, waiting to be stopped"
  while :; do
    sleep 3600 &
    wait $! || true
  done
}

train_epoch() {
  note beat
  sleep "$epoch_seconds"
  [ "$epoch" -ne "$fail_at" ] || misbehave
  loss=$(awk -v e="$epoch" 'BEGIN { printf "%.4f", 2.3 / e }')
  accuracy=$(awk -v e="$epoch" 'BEGIN { printf "%.4f", 1 - 0.9 / e }')
  if [ "$fail" = nan ] && [ "$epoch" -ge "$fail_at" ]; then loss=NaN; fi
  left=$(awk -v n="$((epochs - epoch))" -v s="$epoch_seconds" 'BEGIN { printf "%.1f", n * s }')
  echo "Epoch $epoch/$epochs: 100%|##########| 64/64 [rank $rank, loss=$loss, accuracy=$accuracy]"
  ! first || echo "checkpoint of $network, epoch $epoch" \
    >"$results/model_epoch_$(printf %03d "$epoch").pth"
  status RUNNING INFO "Training loop in progress" "\"epoch\": $epoch, \"max_epoch\": $epochs, \
\"eta\": \"${left}s\", \"time_per_epoch\": \"${epoch_seconds}s\", \
\"kpi\": {\"loss\": $loss, \"accuracy\": $accuracy}"
  [ "$epoch" -ne "$held_at" ] || until [ -e "$results/go" ]; do sleep 0.2; done
  [ "$epoch" -ne "$fail_at" ] || wait_to_be_stopped
}

echo "Starting $action of $network, job $job, on $(hostname): attempt $attempt, rank $rank of $nodes"
echo "UserWarning: this is a stand-in; nothing is learned" >&2
note begin
status STARTED INFO "Starting $network $action"
[ -z "$role" ] || serve
rendezvous
last=$(find "$results" -name 'model_epoch_*.pth' | sed 's/.*_0*\([0-9]*\)\.pth$/\1/' |
  sort -n | tail -n 1)
[ -z "$last" ] || echo "Resuming after epoch $last"
epoch=$((${last:-0} + 1))
while [ "$epoch" -le "$epochs" ]; do
  train_epoch
  epoch=$((epoch + 1))
done
status SUCCESS INFO "$action finished successfully" "\"kpi\": {\"loss\": ${loss:-0}, \"accuracy\": ${accuracy:-0}}"
echo "$action finished successfully"
note end 0
! first || : >"$results/.policy_ended"
