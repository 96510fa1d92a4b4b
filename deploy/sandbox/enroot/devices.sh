# shellcheck shell=bash disable=SC2154 # the variables are of enroot_inside
# Enroot's hooks of GPUs and InfiniBand cards. A node of the sandbox has none of either. As in the real ones, a variable of the
# job overrides the same one of the image.

# effective PREFIX: exports the variables of the environment file that the job does not have. The last line of a name holds.
effective() {
  local key value
  while IFS='=' read -r key value; do
    [[ -v $key ]] || export "$key=$value"
  done < <(tac "$environment" | grep "^$1")
}

# 98-nvidia.sh: chooses what nvidia-container-cli would mount, and leaves its arguments in the container.
hook_nvidia() (
  effective NVIDIA_
  local arguments=() capability requirement
  [[ ${NVIDIA_VISIBLE_DEVICES:-void} != void ]] || return 0
  [[ $NVIDIA_VISIBLE_DEVICES == none ]] || arguments+=("--device=$NVIDIA_VISIBLE_DEVICES")
  NVIDIA_DRIVER_CAPABILITIES=${NVIDIA_DRIVER_CAPABILITIES:-utility}
  for capability in ${NVIDIA_DRIVER_CAPABILITIES//,/ }; do
    case $capability in
    all) arguments+=(--compute --compat32 --display --graphics --utility --video) && break ;;
    compute | compat32 | display | graphics | utility | video) arguments+=("--$capability") ;;
    *) fail "Unknown NVIDIA driver capability: $capability" ;;
    esac
  done
  if [[ -z ${NVIDIA_DISABLE_REQUIRE-} ]]; then
    for requirement in $(compgen -e NVIDIA_REQUIRE_); do arguments+=("--require=${!requirement}"); done
  fi
  printf '%s\n' "${arguments[*]}" >"$rootfs/etc/nvidia-container-cli"
)

# 99-mellanox.sh: no card has the number that a job names.
hook_mellanox() (
  effective MELLANOX_
  local card
  case ${MELLANOX_VISIBLE_DEVICES:-void} in
  void | none | all) return 0 ;;
  esac
  for card in ${MELLANOX_VISIBLE_DEVICES//,/ }; do fail "Unknown MELLANOX device id: $card"; done
)
