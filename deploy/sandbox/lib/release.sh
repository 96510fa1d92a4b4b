# shellcheck shell=bash disable=SC2034 # the other parts use what is set here
# The Slurm version of a sandbox, and the root file system of its machines: the host's for 22.05, which is part of Debian 12,
# and for 24.11 a Debian 13 that all sandboxes of the host share.

readonly CACHE_DIR=/var/cache/tao-slurm-sandbox

# release_choose VERSION: without a version, that of the existing sandbox, otherwise 22.05.
release_choose() {
  local was
  was=$(cat "$SANDBOX_DIR/slurm" 2>/dev/null || true)
  # Older sandboxes have no version file; they all used 22.05.
  [[ -n $was || ! -e $SANDBOX_DIR/instance ]] || was=22.05
  SLURM=${1:-${was:-22.05}}
  [[ -z $was || $was == "$SLURM" ]] ||
    die "$SANDBOX_DIR is a sandbox of Slurm $was, not $SLURM: run 'sandbox reset' first, or give another SANDBOX_DIR"
  case $SLURM in
  22.05) ROOTFS='' ;;
  # Named by its recipe: a running sandbox keeps its root file system when the recipe changes.
  24.11) ROOTFS=$CACHE_DIR/$SLURM-$(sha256sum <"$HERE/lib/rootfs" | cut -c1-8) ;;
  *) die "SANDBOX_SLURM must be 22.05 or 24.11, not '$SLURM'" ;;
  esac
}

# release_keep: stores the version of the sandbox.
release_keep() { printf '%s\n' "$SLURM" >"$SANDBOX_DIR/slurm"; }

rootfs_ready() { [[ -z $ROOTFS || -e $ROOTFS/.made ]]; }

# A second process waits. An interrupted build starts again from scratch.
rootfs_make() {
  ! rootfs_ready || return 0
  local began=$SECONDS held log=$SANDBOX_DIR/log/rootfs.log
  install -d "$CACHE_DIR"
  exec {held}>"$CACHE_DIR/lock"
  flock -n "$held" || {
    say "waiting for another sandbox that creates $ROOTFS"
    flock -w 900 "$held" || die "another sandbox holds $CACHE_DIR/lock"
  }
  if ! rootfs_ready; then
    say "creating $ROOTFS for Slurm $SLURM (about 45 s, once per machine)"
    rm -rf --one-file-system "$CACHE_DIR"/*.new
    setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --propagation private -- \
      "$HERE/lib/rootfs" "$ROOTFS.new" "$(rootfs_mirror)" "$LOGIN_USER:$LOGIN_UID" "$OTHER_USER:$OTHER_UID" \
      3>&2 >"$log" 2>&1 </dev/null {held}>&- {LOCK}>&- || {
      tail -n 3 "$log" >&2
      die "cannot create the root file system; see $log"
    }
    touch "$ROOTFS.new/.made"
    mv "$ROOTFS.new" "$ROOTFS"
    say "created in $((SECONDS - began)) s"
  fi
  exec {held}>&-
}

# This host's Debian mirror; empty if apt has none, then debootstrap uses its default.
rootfs_mirror() {
  local codename
  codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  # shellcheck disable=SC2016 # apt fills in these, not the shell
  apt-get indextargets --no-release-info --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
    sed -n "s/ $codename main\$//p" | head -n 1
}

# ids NAME: "UID:GID" of a user of the machines. Users of packages have other numbers in Debian 13.
ids() {
  local found
  found=$(getent passwd "$1" 2>/dev/null) || found=
  [[ -z $ROOTFS ]] || found=$(grep "^$1:" "$ROOTFS/etc/passwd")
  [[ -n $found ]] || die "no user $1 on the machines"
  cut -d: -f3,4 <<<"$found"
}

# owned USER ARGUMENT...: creates directories that belong to a user of the machines; arguments are those of install -d.
owned() {
  local both
  both=$(ids "$1")
  shift
  install -d -o "${both%:*}" -g "${both#*:}" "$@"
}
