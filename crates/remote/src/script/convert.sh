
# Only a complete image ever has the name that jobs read. The partial file is in the same directory, so that the rename is atomic.
readonly _tao_partial=$_tao_target.partial.$_tao_id
_tao_temp=
_tao_clean() {
  local code=$?
  _tao_is_itself || return "$code"
  rm -f -- "$_tao_partial"
  if [ -n "$_tao_temp" ]; then rm -rf -- "$_tao_temp"; fi
  return "$code"
}
trap '_tao_clean; _tao_finish' EXIT
_tao_fail() {
  echo "tao-slurm: $1" >&2
  exit 1
}

if whole_image "$_tao_target"; then
  echo "tao-slurm: another conversion has created $_tao_target" >&2
  exit 0
fi
mkdir -p -- "${_tao_target%/*}" || _tao_fail "the cache directory ${_tao_target%/*} cannot be created"
# Removes files of conversions that were killed a day ago or earlier; younger ones may be in use.
find "${_tao_target%/*}" -maxdepth 1 -type f -name "${_tao_target##*/}.partial.*" -mmin +1440 -delete 2>/dev/null
# After a requeue: enroot does not overwrite files.
rm -f -- "$_tao_partial"

mkdir -p -- "$_tao_temp_root" 2>/dev/null
_tao_temp=$(mktemp -d "$_tao_temp_root/tao-sqsh.$_tao_id.XXXXXX") \
  || _tao_fail "no temporary directory can be created in $_tao_temp_root on $(hostname)"
export ENROOT_TEMP_PATH=$_tao_temp

enroot import -o "$_tao_partial" -- "$_tao_uri" </dev/null || exit
whole_image "$_tao_partial" || _tao_fail "enroot import succeeded, but its file is not a complete SquashFS image"
# The content must reach the disk before the name.
sync -- "$_tao_partial" 2>/dev/null
mv -fT -- "$_tao_partial" "$_tao_target" || _tao_fail "the image cannot be moved to $_tao_target"
