# shellcheck shell=bash
# Faults of the login hosts while they are up.

readonly NOISE=$SANDBOX_DIR/home/$LOGIN_USER/.bashrc

# Cuts all sessions of a login host, like a broken link or a firewall. The commands in them continue.
login_cut() {
  local listener one all
  listener=$(running "$1.pid")
  # Find all before the first one dies: afterwards its children have another parent.
  mapfile -t all < <(tree "$listener")
  for one in "${all[@]:1}"; do
    one=${one% *}
    [[ $(cat "/proc/$one/comm" 2>/dev/null) != sshd* ]] || kill -KILL "$one" 2>/dev/null || true
  done
}

# sshd reads its configuration again; open sessions keep theirs.
login_reload() {
  local i host pid
  for i in "${!LOGIN_HOSTS[@]}"; do
    host=${LOGIN_HOSTS[i]}
    sshd_conf "$host" "${LOGIN_ADDR[i]}" | replace "$SANDBOX_DIR/etc/ssh/sshd_config-$host"
    if pid=$(running "sshd-$host.pid"); then
      kill -HUP "$pid"
      # It closes its socket and executes itself again.
      await 2 silent "${LOGIN_ADDR[i]}" "$SSH_PORT" || true
      await 30 listens "${LOGIN_ADDR[i]}" "$SSH_PORT" || die "sshd of $host did not restart"
    fi
  done
}

silent() { ! listens "$1" "$2"; }

# What faults add to the configuration of sshd.
sshd_conf_faults() {
  ! fault_is_on sshd-few-sessions || printf 'MaxSessions 1\nMaxStartups 2:100:2\n'
  ! fault_is_on login-noise || printf 'Banner %s\n' "$VIEW/etc/ssh/banner"
}

login_noise_on() {
  # shellcheck disable=SC2016 # to be read as it is
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

# A FUSE file system over /lustre of each login host. The kernel caches its attributes, names and absences, as it does for NFS
# and Lustre. Writes, new files and removals are immediate.
late_on() {
  local host
  for host in "${LOGIN_HOSTS[@]}"; do
    alive "sshd-$host" || continue
    inside "sshd-$host" setsid bindfs -f -o attr_timeout=8,entry_timeout=8,negative_timeout=8,suid,dev \
      --multithreaded /lustre /lustre </dev/null >"$SANDBOX_DIR/log/late-$host.out" 2>&1 {LOCK}>&- &
    disown
  done
  for host in "${LOGIN_HOSTS[@]}"; do
    ! alive "sshd-$host" || await 30 late_is_on "$host" || die "bindfs failed; see $SANDBOX_DIR/log/late-$host.out"
  done
}

late_is_on() { inside "sshd-$1" findmnt -n -t fuse,fuse.bindfs /lustre >/dev/null; }

# A host that was off meanwhile has lost it.
late_off() {
  local host
  for host in "${LOGIN_HOSTS[@]}"; do
    ! alive "sshd-$host" || ! late_is_on "$host" || inside "sshd-$host" umount --lazy /lustre
  done
}
