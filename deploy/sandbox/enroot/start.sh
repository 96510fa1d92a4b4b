# shellcheck shell=bash disable=SC2154 # the variables are settings
# enroot start: mounts a container in namespaces of its own, and becomes a command in it.

# enroot_start --conf SCRIPT NAME COMMAND...
enroot_start() {
  local config rootfs as=--map-current-user
  [[ ${1-} == --conf && $# -gt 3 ]] || usage 'start --conf CONFIG NAME COMMAND...'
  config=$(canonical "$2")
  rootfs=$(canonical "$ENROOT_DATA_PATH/${3##*/}")
  [[ $3 != */* && -d $rootfs ]] || fail "No such file or directory: $rootfs"
  bash -n "$config" || fail "Invalid argument: $config"
  shift 3
  ! enabled ENROOT_REMAP_ROOT || as=--map-root-user
  # The process of this shell becomes the command, because Pyxis waits for it.
  exec unshare --user "$as" --keep-caps --mount -- "$0" inside "$config" "$rootfs" "$@"
}

# enroot_inside SCRIPT ROOTFS COMMAND...: goes on with the capabilities of the new user namespace.
# The script may define three functions: environ, hooks and mounts.
enroot_inside() {
  local config=$1 rootfs=$2 environment=$ENROOT_RUNTIME_PATH/environment
  shift 2
  export ENROOT_ROOTFS=$rootfs
  enroot-mount / <<FSTAB
tmpfs $ENROOT_RUNTIME_PATH tmpfs mode=700
$rootfs $rootfs none bind,nosuid,nodev
FSTAB
  # shellcheck source=/dev/null
  source "$config"
  environment_write
  mounts_of_system | enroot-mount "$rootfs"
  hook_users
  hook_home | enroot-mount "$rootfs"
  hook_pytorch
  hook_nvidia
  hook_mellanox
  if declare -F hooks >/dev/null; then hooks; fi
  if declare -F mounts >/dev/null; then mounts | enroot-mount "$rootfs"; fi
  environment_clean
  if ! enabled ENROOT_ROOTFS_WRITABLE; then
    printf 'none / none remount,bind,nosuid,nodev,ro\n' | enroot-mount "$rootfs"
  fi
  exec enroot-switchroot "$environment" "$rootfs" "$@"
}

# A file of NAME=VALUE lines: of the image, then of the caller. A later line overrides an earlier one.
environment_write() {
  {
    [[ ! -f $rootfs/etc/environment ]] || substituted <"$rootfs/etc/environment"
    printf 'TERM=%s\n' "${TERM-}"
    if declare -F environ >/dev/null; then environ; fi
  } >"$environment"
  environment_clean
}

# Replaces ${NAME} by the job's value.
substituted() {
  local line before
  while IFS= read -r line || [[ -n $line ]]; do
    before=
    while [[ $line =~ \$\{([A-Za-z_][A-Za-z0-9_]*)\} ]]; do
      before+=${line%%"${BASH_REMATCH[0]}"*}${!BASH_REMATCH[1]-}
      line=${line#*"${BASH_REMATCH[0]}"}
    done
    printf '%s\n' "$before$line"
  done
}

# Drops lines without a name, and Enroot's own variables; takes quotes away.
environment_clean() {
  sed -E -i \
    -e 's/^[[:space:]]+//' \
    -e '/^[A-Za-z_][A-Za-z0-9_]*=/!d' \
    -e '/^ENROOT_/d' \
    -e "s/^([^=]*)=[\"'](.*)[\"'][[:space:]]*\$/\1=\2/" \
    "$environment"
}

mounts_of_system() {
  cat <<'FSTAB'
/proc /proc none x-create=dir,rbind,rw,nosuid,nodev,noexec
/sys /sys none x-create=dir,rbind,ro,nosuid,nodev,noexec
/dev /dev none x-create=dir,rbind,rw,nosuid,noexec
tmpfs /tmp tmpfs x-create=dir,rw,nosuid,nodev,mode=755
tmpfs /var/run tmpfs x-create=dir,rw,nosuid,nodev,mode=755
tmpfs /var/lock tmpfs x-create=dir,rw,nosuid,nodev,mode=755
/etc/hosts /etc/hosts none x-create=file,bind,ro,nosuid,nodev,noexec
/etc/hostname /etc/hostname none x-create=file,bind,ro,nosuid,nodev,noexec,nofail
/etc/resolv.conf /etc/resolv.conf none x-create=file,bind,ro,nosuid,nodev,noexec,nofail
FSTAB
}

# The image has no entry for the cluster's user, and no home directory.
hook_users() {
  local name gid gecos home shell group
  IFS=: read -r name _ _ gid gecos home shell < <(getent passwd "$EUID")
  group=$(getent group "$gid")
  [[ -x $rootfs$shell ]] || shell=/bin/sh
  entries passwd root "$name" <<ENTRIES
root:x:0:0:root:/root:$shell
$name:x:$EUID:$gid:$gecos:$home:$shell
ENTRIES
  entries group root "${group%%:*}" <<ENTRIES
root:x:0:
${group%%:*}:x:$gid:
ENTRIES
  [[ -e $rootfs$home ]] || (umask 077 && mkdir -p "$rootfs$home")
}

# entries FILE NAME...: puts entries from stdin before those of other names.
entries() {
  local file=$rootfs/etc/$1 IFS='|'
  shift
  touch "$file"
  {
    awk -F : '!seen[$1]++'
    grep -Ev "^($*):" "$file" || true
  } >"$file.new"
  mv "$file.new" "$file"
}

hook_home() {
  enabled ENROOT_MOUNT_HOME || return 0
  local inside=$HOME
  ! enabled ENROOT_REMAP_ROOT || inside=/root
  printf 'HOME=%s\n' "$inside" >>"$environment"
  printf '%s %s none x-create=dir,bind,rw,nosuid\n' "$HOME" "$inside"
}

# NVIDIA's 50-slurm-pytorch: the variables of torch.distributed, for an image that says that it has PyTorch.
hook_pytorch() {
  grep -q '^PYTORCH_VERSION=' "$environment" || return 0
  default_variable MASTER_ADDR "$(scontrol show hostname "${SLURM_STEP_NODELIST-}" 2>/dev/null | head -n 1)"
  default_variable MASTER_PORT "${SLURM_JOB_ID:+$((SLURM_JOB_ID % 4536 + 61000))}"
  default_variable WORLD_SIZE "${SLURM_NTASKS-}"
  # The plugin withholds the place of a task, and sets these for each.
  default_variable RANK "${SLURM_PROCID-}"
  default_variable LOCAL_RANK "${SLURM_LOCALID-}"
  ((${SLURM_STEP_NUM_TASKS:-1} <= ${SLURM_STEP_NUM_NODES:-1})) || default_variable OMP_NUM_THREADS 1
}

# default_variable NAME VALUE: unless it is set, or the value is empty.
default_variable() {
  [[ -z $2 ]] || grep -q "^$1=" "$environment" || printf '%s=%s\n' "$1" "$2" >>"$environment"
}
