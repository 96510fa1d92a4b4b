# shellcheck shell=bash
# Faults of running login hosts.

readonly NOISE=$SANDBOX_DIR/home/$LOGIN_USER/.bashrc

# Cuts all sessions of a login host, like a broken connection or a firewall: their programs continue.
login_cut() {
  local listener one all
  listener=$(running "$1.pid")
  # Find all processes before the first one is killed: its children would get another parent then.
  mapfile -t all < <(tree "$listener")
  for one in "${all[@]:1}"; do
    one=${one% *}
    [[ $(cat "/proc/$one/comm" 2>/dev/null) != sshd* ]] || kill -KILL "$one" 2>/dev/null || true
  done
}

# Reloads the configuration of sshd; open sessions keep the old one.
login_reload() {
  local i host pid
  for i in "${!LOGIN_HOSTS[@]}"; do
    host=${LOGIN_HOSTS[i]}
    sshd_conf "$host" "${LOGIN_ADDR[i]}" | replace "$SANDBOX_DIR/etc/ssh/sshd_config-$host"
    if pid=$(running "sshd-$host.pid"); then
      kill -HUP "$pid"
      # sshd closes its socket and re-executes itself.
      await 2 silent "${LOGIN_ADDR[i]}" "$SSH_PORT" || true
      await 5 listens "${LOGIN_ADDR[i]}" "$SSH_PORT" || die "sshd of $host did not restart"
    fi
  done
}

silent() { ! listens "$1" "$2"; }

# The lines that active faults add to the configuration of sshd.
sshd_conf_faults() {
  ! fault_is_on sshd-few-sessions || printf 'MaxSessions 1\nMaxStartups 2:100:2\n'
  ! fault_is_on login-noise || printf 'Banner %s\n' "$VIEW/etc/ssh/banner"
}

login_noise_on() {
  # shellcheck disable=SC2016 # literal text
  printf '*** Authorised use only: 1234567 OK 42 | \\n $(date)\n' >"$SANDBOX_DIR/etc/ssh/banner"
  [[ -e $NOISE.quiet ]] || cp -p "$NOISE" "$NOISE.quiet"
  {
    printf 'echo "Welcome! You have 3 new messages. Quota: 97%% | 4711 OK"\n'
    printf 'echo "module: command not found" >&2; printf "no newline at the end"\n'
    cat "$NOISE.quiet"
  } >"$NOISE.new"
  chown "$(ids "$LOGIN_USER")" "$NOISE.new"
  mv "$NOISE.new" "$NOISE"
  login_reload
}

login_noise_off() { [[ ! -e $NOISE.quiet ]] || mv "$NOISE.quiet" "$NOISE"; }

sbatch_wrapper_update() {
  local fault
  for fault in sbatch-{slow,killed,refuses,rate-limited}; do
    if fault_is_on "$fault"; then
      install -m 755 "$HERE/lib/sbatch" "$SANDBOX_DIR/bin/sbatch.new"
      mv "$SANDBOX_DIR/bin/sbatch.new" "$SANDBOX_DIR/bin/sbatch"
      return
    fi
  done
  rm -f "$SANDBOX_DIR/bin/sbatch"
}

# Mounts a FUSE file system over /lustre of each login host. The kernel caches its attributes, names and missing files for some
# seconds, as it does for NFS and Lustre. Writes and local changes take effect at once.
late_on() {
  local host
  for host in "${LOGIN_HOSTS[@]}"; do
    alive "sshd-$host" || continue
    inside "sshd-$host" setsid bindfs -f -o attr_timeout=8,entry_timeout=8,negative_timeout=8,suid,dev \
      --multithreaded /lustre /lustre </dev/null >"$SANDBOX_DIR/log/late-$host.out" 2>&1 {LOCK}>&- &
    disown
  done
  for host in "${LOGIN_HOSTS[@]}"; do
    ! alive "sshd-$host" || await 5 late_is_on "$host" || die "bindfs failed; see $SANDBOX_DIR/log/late-$host.out"
  done
}

late_is_on() { inside "sshd-$1" findmnt -n -t fuse,fuse.bindfs /lustre >/dev/null; }

# A host that was restarted meanwhile has lost the mount.
late_off() {
  local host
  for host in "${LOGIN_HOSTS[@]}"; do
    ! alive "sshd-$host" || ! late_is_on "$host" || inside "sshd-$host" umount --lazy /lustre
  done
}
