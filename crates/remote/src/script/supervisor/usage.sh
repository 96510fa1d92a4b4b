
# What the job uses of its nodes: a program on each of them prints lines, and one process adds these up and rewrites a small file.

# The CPU seconds that the job has used on this node, and its memory in MiB without the page cache: of its cgroup (v2), else of its
# processes, which do not tell of those that ended without being waited for.
_tao_use_of_node() {
  local group
  group=$(sed -n 's/^0:://p' /proc/self/cgroup)
  group=/sys/fs/cgroup${group%%/job_"$SLURM_JOB_ID"*}/job_$SLURM_JOB_ID
  if [ -r "$group/cpu.stat" ] && [ -r "$group/memory.stat" ]; then
    awk '$1 == "usage_usec" { cpu = $2 / 1e6 } $1 ~ /^(anon|shmem)$/ { bytes += $2 } END { printf "%d %d\n", cpu, bytes / 1048576 }' \
      "$group/cpu.stat" "$group/memory.stat"
  else
    scontrol listpids "$SLURM_JOB_ID" | awk '$1 ~ /^[0-9]+$/ { print "/proc/" $1 "/stat" }' | xargs -r cat \
      | awk -v hz="$(getconf CLK_TCK)" -v page="$(getconf PAGESIZE)" '
        { sub(/^.*\) /, ""); ticks += $12 + $13 + $14 + $15; pages += $22 }
        END { printf "%d %d\n", ticks / hz, pages * page / 1048576 }'
  fi
}
# Prints what the job uses of this node, every so many ($1) seconds: `node NODE CPU-SECONDS MIB`, and for each of its GPUs
# `gpu NODE INDEX PERCENT USED-MIB ALL-MIB`. Ends when its lines are not read any more.
_tao_sample() {
  local node=${SLURMD_NODENAME:-$(hostname)} gpu=()
  trap '' USR1 USR2
  # Of a node whose GPUs are not fenced off only those of the job.
  if [ -n "${CUDA_VISIBLE_DEVICES-}" ]; then gpu=("--id=$CUDA_VISIBLE_DEVICES"); fi
  if type nvidia-smi >/dev/null; then
    nvidia-smi "${gpu[@]}" --query-gpu=index,utilization.gpu,memory.used,memory.total --format=csv,noheader,nounits --loop="$1" \
      </dev/null | sed -u "s/,//g; s/^/gpu $node /" &
  fi
  while echo "node $node $(_tao_use_of_node)"; do sleep "$1"; done
}
# Adds up these lines, and writes the marker `usage` once a minute, at first more often: "TIME BEGIN", then for each node
# " NAME CPU-SECONDS MOST-MIB", for each GPU of it " INDEX:SAMPLES:SUM:MOST-PERCENT:MOST-MIB:ALL-MIB", and a semicolon.
_tao_add_up() {
  local kind node index percent used all of text last=0 began
  local -A cpu memory gpus samples sum most most_mib mib
  trap '' USR1 USR2
  began=$(_tao_now)
  while read -r kind node index percent used all; do
    # Not in the table of a driver: `[N/A]`, as of a GPU in parts.
    if [[ ! "$index $percent ${used:-0} ${all:-0}" =~ ^[0-9]{1,10}\ [0-9]{1,9}\ [0-9]{1,9}\ [0-9]{1,9}$ ]]; then continue; fi
    if [ "$kind" = node ]; then
      if ((${#cpu[@]} >= 512)) && [ -z "${cpu[$node]-}" ]; then continue; fi
      ((index > ${cpu[$node]:--1})) && cpu[$node]=$index
      ((percent > ${memory[$node]:--1})) && memory[$node]=$percent
      _tao_time=$(_tao_now)
      if ((_tao_time - last < 60 && (_tao_time - last) * 4 < _tao_time - began)); then continue; fi
      last=$_tao_time text=''
      for node in "${!cpu[@]}"; do
        text+=" $node ${cpu[$node]} ${memory[$node]}"
        for of in ${gpus[$node]-}; do
          text+=" ${of#"$node"/}:${samples[$of]}:${sum[$of]}:${most[$of]}:${most_mib[$of]}:${mib[$of]}"
        done
        text+=';'
      done
      _tao_mark usage "$last $began$text"
    elif ((${#samples[@]} < 512)) || [ -n "${samples[$node/$index]-}" ]; then
      of=$node/$index
      if [ -z "${samples[$of]-}" ]; then gpus[$node]+=" $of"; fi
      samples[$of]=$((${samples[$of]:-0} + 1)) sum[$of]=$((${sum[$of]:-0} + percent)) mib[$of]=$all
      ((percent > ${most[$of]:--1})) && most[$of]=$percent
      ((used > ${most_mib[$of]:--1})) && most_mib[$of]=$used
    fi
  done
}
# Begins to measure on all nodes. A job on one node needs no step for it.
_tao_measure() {
  local others=$((_tao_job_nodes - 1))
  {
    _tao_sample "$_tao_every" &
    if ((others)); then
      # Without memory of its own: the step of the job may have all of it already.
      env -u SLURM_MEM_PER_NODE -u SLURM_MEM_PER_CPU -u SLURM_MEM_PER_GPU \
        srun --export=ALL --overlap --mem=0 --nodes="$others" --ntasks="$others" --ntasks-per-node=1 --cpu-bind=none --mpi=none \
        --nodelist="$(_tao_slice 1 "$others" ,)" \
        -- bash -c "$(declare -f _tao_use_of_node _tao_sample)"$'\n_tao_sample "$1"' sample "$_tao_every" </dev/null &
    fi
    wait
  } {_tao_never}<&- 2>/dev/null | _tao_add_up >/dev/null 2>&1 &
  _tao_measurer=$!
}
