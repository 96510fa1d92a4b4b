# shellcheck shell=bash
# The Debian packages that the sandbox needs.

packages_wanted() {
  PACKAGES=(postgresql openssh-client squashfs-tools gcc libc6-dev iproute2 util-linux e2fsprogs procps)
  case $SLURM in
  22.05) PACKAGES+=(slurmctld slurmd slurmdbd slurm-client libslurm-dev munge mariadb-server openssh-server bindfs) ;;
  *) PACKAGES+=(debootstrap) ;;
  esac
}

packages_missing() {
  local package
  declare -A installed=()
  while read -r package; do
    installed[$package]=1
  done < <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "${PACKAGES[@]}" 2>/dev/null |
    sed -n 's/^ii *//p')
  for package in "${PACKAGES[@]}"; do
    [[ -v installed[$package] ]] || printf '%s\n' "$package"
  done
  # Either busybox package works, and installing one removes the other.
  [[ -x /bin/busybox ]] || printf 'busybox-static\n'
}

packages_install() {
  local missing log=$SANDBOX_DIR/log/packages.log
  packages_wanted
  mapfile -t missing < <(packages_missing)
  ((${#missing[@]})) || return 0
  command -v apt-get >/dev/null ||
    die "apt-get not found; install these packages manually: ${missing[*]}"
  say "installing ${missing[*]}"
  packages_forbid_daemons
  # Fetch the package lists only if they are missing or too old.
  packages_apt "${missing[@]}" >"$log" 2>&1 || {
    apt-get update -qq >>"$log" 2>&1 || true
    packages_apt "${missing[@]}" >>"$log" 2>&1 ||
      die "apt-get could not install the packages; see $log"
  }
  packages_allow_daemons
}

packages_apt() {
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o DPkg::Lock::Timeout=120 "$@"
}

# Without this, dpkg would start every installed daemon on the ports of a real cluster.
packages_forbid_daemons() {
  local policy=/usr/sbin/policy-rc.d
  POLICY_WAS=
  if [[ -e $policy ]]; then
    POLICY_WAS=$(mktemp)
    cp -p "$policy" "$POLICY_WAS"
  fi
  trap packages_allow_daemons EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
}

packages_allow_daemons() {
  trap - EXIT
  if [[ -n $POLICY_WAS ]]; then
    mv "$POLICY_WAS" /usr/sbin/policy-rc.d
  else
    rm -f /usr/sbin/policy-rc.d
  fi
}
