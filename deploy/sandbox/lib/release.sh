# shellcheck shell=bash disable=SC2034 # the other parts use what is set here
# Which Slurm a sandbox runs, and the root file system of its machines: the host's own for 22.05, which Debian 12 has,
# and for 24.11 one of Debian 13 that all sandboxes of the host share.

readonly CACHE_DIR=/var/cache/tao-slurm-sandbox

# release_choose VERSION: an empty one is whatever the sandbox was first brought up with, or else 22.05.
release_choose() {
  local was
  was=$(cat "$SANDBOX_DIR/slurm" 2>/dev/null || true)
  # Sandboxes were all the same before there was a choice.
  [[ -n $was || ! -e $SANDBOX_DIR/instance ]] || was=22.05
  SLURM=${1:-${was:-22.05}}
  [[ -z $was || $was == "$SLURM" ]] ||
    die "$SANDBOX_DIR is a sandbox of Slurm $was, not $SLURM: run 'sandbox reset' first, or give another SANDBOX_DIR"
  case $SLURM in
  22.05) ROOTFS='' ;;
  # Named for its recipe: a sandbox that is up keeps the one it has when the recipe changes.
  24.11) ROOTFS=$CACHE_DIR/$SLURM-$(sha256sum <"$HERE/lib/rootfs" | cut -c1-8) ;;
  *) die "SANDBOX_SLURM must be 22.05 or 24.11, not '$SLURM'" ;;
  esac
}

# release_keep: from now on the sandbox is of this release.
release_keep() { printf '%s\n' "$SLURM" >"$SANDBOX_DIR/slurm"; }

rootfs_ready() { [[ -z $ROOTFS || -e $ROOTFS/.made ]]; }

# A second caller waits. An interrupted creation starts again.
rootfs_make() {
  ! rootfs_ready || return 0
  local began=$SECONDS held log=$SANDBOX_DIR/log/rootfs.log
  install -d "$CACHE_DIR"
  exec {held}>"$CACHE_DIR/lock"
  flock -n "$held" || {
    say "waiting for another sandbox that is making $ROOTFS"
    flock -w 900 "$held" || die "another sandbox holds $CACHE_DIR/lock"
  }
  if ! rootfs_ready; then
    say "making $ROOTFS for Slurm $SLURM: once for this machine, about 45 s"
    rm -rf --one-file-system "$CACHE_DIR"/*.new
    setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --propagation private -- \
      "$HERE/lib/rootfs" "$ROOTFS.new" "$(rootfs_mirror)" "$LOGIN_USER:$LOGIN_UID" "$OTHER_USER:$OTHER_UID" \
      3>&2 >"$log" 2>&1 </dev/null {held}>&- {LOCK}>&- || {
      tail -n 3 "$log" >&2
      die "the root file system could not be made; see $log"
    }
    touch "$ROOTFS.new/.made"
    mv "$ROOTFS.new" "$ROOTFS"
    say "made in $((SECONDS - began)) s"
  fi
  exec {held}>&-
}

# Prints this host's Debian mirror; nothing if apt does not know one, so that debootstrap uses its default.
rootfs_mirror() {
  local codename
  codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  # shellcheck disable=SC2016 # apt fills in these, not the shell
  apt-get indextargets --no-release-info --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
    sed -n "s/ $codename main\$//p" | head -n 1
}

# ids NAME: "UID:GID" of a user of the machines. Those that packages make have other numbers in Debian 13.
ids() {
  local found
  found=$(getent passwd "$1" 2>/dev/null) || found=
  [[ -z $ROOTFS ]] || found=$(grep "^$1:" "$ROOTFS/etc/passwd")
  [[ -n $found ]] || die "no user $1 on the machines"
  cut -d: -f3,4 <<<"$found"
}

# owned USER ARGUMENT...: directories that belong to a user of the machines; arguments are those of install -d.
owned() {
  local both
  both=$(ids "$1")
  shift
  install -d -o "${both%:*}" -g "${both#*:}" "$@"
}
