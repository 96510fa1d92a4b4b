# shellcheck shell=bash
# The shared file system: an ext4 of its own in a file, so that it can be full while the host's is not.

readonly LUSTRE_SIZE=16G

# Machines that run already have the plain directory of an older sandbox, or what is mounted there now.
lustre_up() {
  local dir=$SANDBOX_DIR/lustre image=$SANDBOX_DIR/lustre.img
  ! mountpoint -q "$dir" || return 0
  ! instance_is_running || return 0
  if [[ ! -e $image ]]; then
    # Sparse, and nothing in it has to survive a loss of power.
    truncate -s "$LUSTRE_SIZE" "$image.new"
    mkfs.ext4 -q -F -m 0 -O ^has_journal -E lazy_itable_init=1,root_owner=0:0 "$image.new"
    mv "$image.new" "$image"
  fi
  e2fsck -p "$image" >"$SANDBOX_DIR/log/lustre.log" 2>&1 || (($? < 4)) ||
    die "$image is damaged; see $SANDBOX_DIR/log/lustre.log"
  # What an older sandbox kept in the directory itself moves into the file system; so does the rest after an interruption.
  if [[ -d $dir && ! -d $dir.was ]] && [[ -n $(ls -A "$dir") ]]; then mv "$dir" "$dir.was"; fi
  install -d "$dir"
  mount -o loop,noatime "$image" "$dir"
  if [[ -d $dir.was ]]; then
    cp -a "$dir.was/." "$dir/"
    rm -rf "$dir.was"
  fi
}

# A shell may still use it.
lustre_down() {
  ! mountpoint -q "$SANDBOX_DIR/lustre" ||
    umount "$SANDBOX_DIR/lustre" 2>/dev/null || umount --lazy "$SANDBOX_DIR/lustre"
}

# Takes every block that is free. Empty files and short symbolic links can still be made, as on a real one.
lustre_fill() {
  local file=$SANDBOX_DIR/lustre/.full free size offset=0
  mountpoint -q "$SANDBOX_DIR/lustre" ||
    die "$SANDBOX_DIR/lustre is not a mounted file system, because an older version started the sandbox; run down, then up"
  free=$(stat -f -c '%a %S' "$SANDBOX_DIR/lustre")
  size=$((${free% *} * ${free#* }))
  while ((size >= 4096)); do
    if fallocate -o "$offset" -l "$size" "$file" 2>/dev/null; then
      offset=$((offset + size))
    else
      size=$((size / 2 & ~4095))
    fi
  done
}

lustre_free() { rm -f "$SANDBOX_DIR/lustre/.full"; }
