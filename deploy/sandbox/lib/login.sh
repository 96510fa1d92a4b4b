# shellcheck shell=bash
# Two login hosts: one sshd each, with its own address and host keys.

login_keys() {
  local dir=$SANDBOX_DIR/ssh host i
  # ssh-keygen prompts before it overwrites files of an interrupted run.
  if [[ ! -s $dir/id_ed25519.pub ]]; then
    rm -f "$dir/id_ed25519"
    ssh-keygen -q -t ed25519 -N '' -C tao-slurm-sandbox -f "$dir/id_ed25519"
  fi
  for host in "${LOGIN_HOSTS[@]}"; do
    [[ -s $SANDBOX_DIR/etc/ssh/$host.pub ]] && continue
    rm -f "$SANDBOX_DIR/etc/ssh/$host"
    ssh-keygen -q -t ed25519 -N '' -C "$host" -f "$SANDBOX_DIR/etc/ssh/$host"
  done
  replace "$SANDBOX_DIR/etc/ssh/authorized_keys" <"$dir/id_ed25519.pub"
  for i in "${!LOGIN_HOSTS[@]}"; do
    printf '[%s]:%s %s\n' "${LOGIN_ADDR[i]}" "$SSH_PORT" \
      "$(cut -d' ' -f1,2 "$SANDBOX_DIR/etc/ssh/${LOGIN_HOSTS[i]}.pub")"
  done | replace "$dir/known_hosts"
  # The first choice of OpenSSH 9, which also withstands quantum computers, takes eight times as much of a processor.
  for i in "${!LOGIN_HOSTS[@]}"; do
    cat <<CONF
Host ${LOGIN_HOSTS[i]}
  HostName ${LOGIN_ADDR[i]}
  Port $SSH_PORT
  User $LOGIN_USER
  IdentityFile $dir/id_ed25519
  IdentitiesOnly yes
  UserKnownHostsFile $dir/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  KexAlgorithms curve25519-sha256
CONF
  done | replace "$dir/config"
  give_to_caller "$dir" "$dir"/*
}

# login_up [HOST...]: starts these hosts, or both.
login_up() {
  local i host conf log chosen=" ${*:-${LOGIN_HOSTS[*]}} "
  for i in "${!LOGIN_HOSTS[@]}"; do
    host=${LOGIN_HOSTS[i]}
    [[ $chosen == *" $host "* ]] || continue
    alive "sshd-$host" && continue
    stop "sshd-$host"
    conf=$SANDBOX_DIR/etc/ssh/sshd_config-$host log=$SANDBOX_DIR/log/sshd-$host.log
    sshd_conf "$host" "${LOGIN_ADDR[i]}" | replace "$conf"
    touch "$log"
    chmod 644 "$log"
    launch --machine "sshd-$host" "$host" \
      /usr/sbin/sshd -D -f "$VIEW/etc/ssh/sshd_config-$host" -E "$VIEW/log/sshd-$host.log"
  done
  for i in "${!LOGIN_HOSTS[@]}"; do
    [[ $chosen != *" ${LOGIN_HOSTS[i]} "* ]] || await_daemon "sshd-${LOGIN_HOSTS[i]}" 10 listens "${LOGIN_ADDR[i]}" "$SSH_PORT"
  done
}

# Queries the kernel, because a connection would add a line to the log in which tests count.
listens() { [[ -n $(ss -Hltn "src = $1 and sport = :$2") ]]; }

sshd_conf() {
  cat <<CONF
ListenAddress $2:$SSH_PORT
HostKey $VIEW/etc/ssh/$1
PidFile none
LogLevel VERBOSE
AuthorizedKeysFile $VIEW/etc/ssh/authorized_keys
AllowUsers $LOGIN_USER $OTHER_USER
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
PrintMotd no
AcceptEnv LANG LC_*
SetEnv PATH=$VIEW/bin:/usr/local/bin:/usr/bin:/bin
Subsystem sftp internal-sftp
CONF
  # Tests use wrong keys from one address, which newer OpenSSH releases would block for some time.
  [[ -z $ROOTFS ]] || printf 'PerSourcePenalties no\n'
  sshd_conf_faults
}
