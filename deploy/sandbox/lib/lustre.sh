# shellcheck shell=bash
# The shared file system: a separate ext4 in a file, so that it can be full without filling the host's.

readonly LUSTRE_SIZE=16G

# Running machines use the plain directory of an older sandbox, or the current mount.
lustre_up() {
  local dir=$SANDBOX_DIR/lustre image=$SANDBOX_DIR/lustre.img
  ! mountpoint -q "$dir" || return 0
  ! instance_is_running || return 0
  if [[ ! -e $image ]]; then
    # Sparse and without journal: the data need not survive a power loss.
    truncate -s "$LUSTRE_SIZE" "$image.new"
    mkfs.ext4 -q -F -m 0 -O ^has_journal -E lazy_itable_init=1,root_owner=0:0 "$image.new"
    mv "$image.new" "$image"
  fi
  e2fsck -p "$image" >"$SANDBOX_DIR/log/lustre.log" 2>&1 || (($? < 4)) ||
    die "$image is damaged; see $SANDBOX_DIR/log/lustre.log"
  # Move the files that an older sandbox kept in the directory itself; an interrupted move continues here.
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

# Fills every free block. Empty files and short symbolic links can still be created, as on a real full file system.
lustre_fill() {
  local file=$SANDBOX_DIR/lustre/.full free size offset=0
  mountpoint -q "$SANDBOX_DIR/lustre" ||
    die "$SANDBOX_DIR/lustre is not a separate file system, because an older version started the sandbox; run: sandbox down, then sandbox up"
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
