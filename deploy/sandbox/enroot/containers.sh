# shellcheck shell=bash disable=SC2154 # the variables are settings
# The containers of a user on this node: one directory each.

# enroot_create --name NAME [--] FILE
enroot_create() {
  local name='' image rootfs
  while (($#)); do
    case $1 in
    -n | --name) name=${2-} && shift 2 ;;
    --) shift && break ;;
    -*) usage 'create [options] [--] IMAGE' ;;
    *) break ;;
    esac
  done
  (($# == 1)) || usage 'create [options] [--] IMAGE'
  image=$(canonical "$1")
  [[ -f $image ]] || fail "No such file or directory: $image"
  # Also of a file that the user may not read.
  unsquashfs -s "$image" >/dev/null 2>&1 || fail "Invalid image format: $image"
  rootfs=$(container_path "${name:-$(basename "${image%.sqsh}")}")
  [[ ! -e $rootfs ]] || fail "File already exists: $rootfs"
  info 'Extracting squashfs filesystem...'
  unsquashfs -no-progress -user-xattrs -d "$rootfs" "$image" >&2
  find "$rootfs" -type d ! -perm -u=rwx -exec chmod u+rwx {} +
}

enroot_list() { ls -1 "$ENROOT_DATA_PATH"; }

# enroot_remove -f NAME
enroot_remove() {
  [[ ${1-} != -f ]] || shift
  (($# == 1)) || usage 'remove [options] [--] NAME...'
  local rootfs
  rootfs=$(container_path "$1")
  [[ -d $rootfs ]] || fail "No such file or directory: $rootfs"
  rm -rf --one-file-system -- "$rootfs"
}

container_path() {
  [[ $1 != */* ]] || fail "Invalid argument: $1"
  canonical "$ENROOT_DATA_PATH/$1"
}
