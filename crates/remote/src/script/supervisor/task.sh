
# The entry of each task, on its node and inside its container. The words before the program set the task up, in their order. It
# has no variables of its own, because those of the job may have any name. $1: the state directory, $2: the component.
_tao_enter() {
  # Its number among the tasks of the component. It is taken here, before it is hidden from some programs.
  set -- "$1" "$2.${SLURM_PROCID-}" "${@:3}"
  while :; do
    case $3 in
    # One of several tasks. A signal is for its program, which gets it too: who waits for the program must not end before it.
    --several) trap : TERM INT HUP USR1 ;;
    # A port that its program is going to use, on the first of its nodes.
    --free=*)
      if ((${SLURM_PROCID:-0} == 0)) && (: <>"/dev/tcp/127.0.0.1/${3#*=}") 2>/dev/null; then
        echo "tao-slurm: port ${3#*=} is taken on ${SLURMD_NODENAME-this node}" >&2
        _tao_leave "$1" "$2" 111
      fi
      ;;
    --ignore-warning) trap '' USR1 ;;
    # A library must not take Slurm's tasks for its own processes.
    --hide-tasks)
      export SLURM_JOB_NAME=bash
      unset SLURM_NTASKS SLURM_NNODES SLURM_PROCID SLURM_LOCALID SLURM_NTASKS_PER_NODE RANK LOCAL_RANK GROUP_RANK
      ;;
    --hide-nodes) unset WORLD_SIZE NODE_RANK NUM_GPU_PER_NODE MASTER_ADDR MASTER_PORT NNODES NPROC_PER_NODE ;;
    --read=*)
      if [ ! -r "${3#*=}" ]; then
        echo "tao-slurm: the environment file of this job is not there: ${3#*=}" >&2
        _tao_leave "$1" "$2" 121
      fi
      . "${3#*=}"
      ;;
    # A variable, and the one of the node that has its value.
    --node=*)
      set -- "$1" "$2" "_tao_node_${3##*=}" "${3#*=}" "${@:4}"
      export "${4%%=*}=${!3}"
      set -- "$1" "$2" "$3" "${@:5}"
      ;;
    --setup=*) _tao_set_up "${3#*=}" || _tao_leave "$1" "$2" 116 ;;
    --cd=*)
      cd -- "${3#*=}" || {
        echo "tao-slurm: the working directory of this job cannot be entered: ${3#*=}" >&2
        _tao_leave "$1" "$2" 117
      }
      ;;
    --path=*) export PATH="${3#*=}:$PATH" ;;
    # Known on the node only. They count from 0.
    --node-rank) export NODE_RANK="${SLURM_NODEID:?}" ;;
    --task-rank) export RANK="${SLURM_PROCID:?}" LOCAL_RANK="${SLURM_LOCALID:?}" ;;
    --cuda=*)
      export CUDA_HOME="${3#*=}" CUDA_PATH="${3#*=}" CPATH="${3#*=}/include${CPATH:+:$CPATH}" \
        LD_LIBRARY_PATH="${3#*=}/lib64:${3#*=}/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        LIBRARY_PATH="${3#*=}/lib64:${3#*=}/lib${LIBRARY_PATH:+:$LIBRARY_PATH}"
      ;;
    # The program itself may tell when it can be warned.
    --mark) export _tao_begun="$1/begun.$2" ;;
    # From now on it can be warned. Each task has a marker of its own, because tasks on several nodes cannot append to one file. Not
    # `:`, a special builtin: with POSIXLY_CORRECT its failed redirection would end the shell.
    --begun) true 2>/dev/null >"$1/begun.$2" ;;
    # By its number, a step is signaled without the others.
    --step) echo "${SLURM_STEP_ID-}" >"$1/step.${2%.*}" ;;
    --exec) exec "${@:4}" ;;
    # bash itself would tell in the log of the program that a signal has ended it.
    --run)
      { "${@:4}" 2>&9 9>&-; } 9>&2 2>/dev/null
      set -- "$1" "$2" "$?"
      if (($3 == 254)); then echo 'tao-slurm: the program has ended with code 254; bash ends so if it can start no process' >&2; fi
      _tao_leave "$@"
      ;;
    *) export "${3?}" ;;
    esac
    set -- "$1" "$2" "${@:4}"
  done
}
# The first task that fails leaves its code. $1: the state directory, $2: the component and the task, $3: the code.
_tao_leave() {
  set -C
  if (($3)); then echo "$3" 2>/dev/null >"$1/failed.${2%.*}"; fi
  exit "$3"
}
# Runs the lines of a file ($1), each ended by a NUL, such as `module load cuda`. A shell that is no login shell may lack `module`.
_tao_set_up() {
  local _tao_line
  if ! command -v module >/dev/null; then
    for _tao_line in /etc/profile.d/*mod*.sh; do if [ -r "$_tao_line" ]; then . "$_tao_line"; fi; done
  fi
  set +eu
  while IFS= read -r -d '' _tao_line <&9; do
    eval "$_tao_line" 9<&- || {
      echo "tao-slurm: the setup of this job has failed with code $?: $_tao_line" >&2
      return 1
    }
  done 9<"$1"
}
