
# It runs under `set -euo pipefail`. Enroot looks for its credentials in the home directory, whose variable the login shell may not have
# passed on.
export HOME=${HOME-~}

# Only a complete image ever has the name that jobs read. The partial file is in the same directory, so that the rename is atomic.
readonly uri=$1 target=$2 temp_root=$3 partial=$2.partial.${SLURM_JOB_ID:?}
temp=
clean() {
  rm -f -- "$partial"
  if [ -n "$temp" ]; then rm -rf -- "$temp"; fi
}
trap clean EXIT
trap 'exit 143' TERM INT HUP
fail() {
  echo "tao-slurm: $1" >&2
  exit 1
}

if whole_image "$target"; then
  echo "tao-slurm: another conversion has created $target" >&2
  exit 0
fi
mkdir -p -- "${target%/*}" || fail "the cache directory ${target%/*} cannot be created"
# Removes files of conversions that were killed a day ago or earlier; younger ones may be in use.
find "${target%/*}" -maxdepth 1 -type f -name "${target##*/}.partial.*" -mmin +1440 -delete 2>/dev/null || :
# After a requeue: enroot does not overwrite files.
rm -f -- "$partial"

mkdir -p -- "$temp_root" 2>/dev/null || :
temp=$(mktemp -d "$temp_root/tao-sqsh.$SLURM_JOB_ID.XXXXXX") \
  || fail "no temporary directory can be created in $temp_root on $(hostname)"
export ENROOT_TEMP_PATH=$temp

enroot import -o "$partial" -- "$uri" || exit
whole_image "$partial" || fail "enroot import succeeded, but its file is not a complete SquashFS image"
# The content must reach the disk before the name.
sync -- "$partial" 2>/dev/null || :
# A whole file may be in use by now: another conversion may have made it.
if whole_image "$target"; then
  echo "tao-slurm: another conversion has created $target meanwhile" >&2
  exit 0
fi
mv -fT -- "$partial" "$target" || fail "the image cannot be moved to $target"
