# shellcheck shell=bash
# The cluster's disks: each is an ext4 of its own in a sparse file.
#
# `lustre` can be full while the host's disk is not. `state` has the databases. Each test makes and deletes a database of 450
# files, and an ext4 without a journal, as some virtual machines have it, does not use an inode again for a minute: it searches
# for another one (`recently_deleted` in the kernel's fs/ext4/ialloc.c). That took longer than the tests. So both have a journal.

readonly -A DISKS=([lustre]=16G [state]=8G)

disks_up() {
  local name
  for name in "${!DISKS[@]}"; do disk_up "$name"; done
}

# Machines that run already have the plain directory of an older sandbox, or what is mounted there now.
disk_up() {
  local dir=$SANDBOX_DIR/$1 image=$SANDBOX_DIR/$1.img
  ! mountpoint -q "$dir" || return 0
  ! instance_is_running || return 0
  if [[ ! -e $image ]]; then
    truncate -s "${DISKS[$1]}" "$image.new"
    mkfs.ext4 -q -F -m 0 -E lazy_itable_init=1,lazy_journal_init=1,root_owner=0:0 "$image.new"
    mv "$image.new" "$image"
  fi
  e2fsck -p "$image" >"$SANDBOX_DIR/log/$1.log" 2>&1 || (($? < 4)) ||
    die "$image is damaged; see $SANDBOX_DIR/log/$1.log"
  # What an older sandbox kept in the directory itself moves into the file system; so does the rest after an interruption.
  if [[ -d $dir && ! -d $dir.was ]] && [[ -n $(ls -A "$dir") ]]; then mv "$dir" "$dir.was"; fi
  install -d "$dir"
  # Nothing on it has to survive a loss of power.
  mount -o loop,noatime,nobarrier "$image" "$dir"
  if [[ -d $dir.was ]]; then
    cp -a "$dir.was/." "$dir/"
    rm -rf "$dir.was"
  fi
}

# A shell may still use one.
disks_down() {
  local name
  for name in "${!DISKS[@]}"; do
    ! mountpoint -q "$SANDBOX_DIR/$name" ||
      umount "$SANDBOX_DIR/$name" 2>/dev/null || umount --lazy "$SANDBOX_DIR/$name"
  done
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
