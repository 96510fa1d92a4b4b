# shellcheck shell=bash disable=SC2034 # the other parts use what is set here
# Paths, owners, and the names of the machines.

readonly RUN_DIR=/run/tao-slurm-sandbox

# Inside the cluster the sandbox directory is mounted here: the path of the clone may be too long for a
# socket, or below a directory that the daemons' users may not enter.
readonly VIEW=$RUN_DIR/root

# Where a machine mounts its separate root file system before it enters it.
readonly MACHINE_ROOT=$RUN_DIR/machine

readonly GPU_NODES=(node01 node02 node03 node04)
readonly CPU_NODES=(cpu01 cpu02)
readonly NODES=("${GPU_NODES[@]}" "${CPU_NODES[@]}")
readonly LOGIN_HOSTS=(login1 login2)

readonly LOGIN_USER=tao LOGIN_UID=2001
readonly OTHER_USER=ming OTHER_UID=2002
readonly ACCOUNT=tao_account
readonly BASE_RESULTS_DIR=/lustre/fsw/portfolios/edgeai/users/$LOGIN_USER

paths_make() {
  local user
  # Mount points; the host needs them because machines share its root file system.
  install -d "$VIEW" "$MACHINE_ROOT" /lustre /etc/slurm /run/sshd /run/munge /usr/local/bin
  # The daemons refuse keys and sockets below a directory that other users may write to.
  install -d -o root -g root -m 755 "$SANDBOX_DIR"
  # `etc` contains host keys and the database's configuration file, each with its own mode.
  install -d "$SANDBOX_DIR"/{bin,dev,etc/slurm,etc/ssh,home,log,enroot,lustre,registry,run,spool,ssh}
  owned munge "$SANDBOX_DIR"/{log,run}/munge
  owned munge -m 700 "$SANDBOX_DIR/munge"
  owned slurm "$SANDBOX_DIR"/{log,run,state}/slurm
  owned mysql -m 755 "$SANDBOX_DIR/run/mysql"
  install -d -o postgres -g postgres "$SANDBOX_DIR"/{log,run}/postgres
  for user in "$LOGIN_USER" "$OTHER_USER"; do
    [[ -d $SANDBOX_DIR/home/$user ]] || {
      owned "$user" "$SANDBOX_DIR/home/$user"
      cp -r /etc/skel/. "$SANDBOX_DIR/home/$user"
      chown -R "$(ids "$user")" "$SANDBOX_DIR/home/$user"
    }
    owned "$user" "$SANDBOX_DIR/lustre/fsw/portfolios/edgeai/users/$user"
  done
  install -d -m 1777 "$SANDBOX_DIR/lustre/images"
}

# Without PAM, sshd refuses key logins to a locked account ("!"); "*" allows them.
users_make() {
  local user uid
  while read -r user uid; do
    getent passwd "$user" >/dev/null ||
      useradd --uid "$uid" --user-group --home-dir "/home/$user" --no-create-home \
        --shell /bin/bash --password '*' "$user" ||
      die "cannot create user $user with uid $uid; is that uid taken? (getent passwd $uid)"
    [[ $(getent shadow "$user" | cut -d: -f2) != !* ]] || usermod -p '*' "$user"
  done <<<"$LOGIN_USER $LOGIN_UID
$OTHER_USER $OTHER_UID"
}

# Files that the calling user must be able to read, with or without sudo.
give_to_caller() { chown "${SUDO_UID:-0}:${SUDO_GID:-0}" "$@"; }

# replace FILE: writes the new content from stdin atomically. An unchanged file is left alone, because it may
# be mounted over another one.
replace() {
  local new=$1.new
  cat >"$new"
  if cmp -s "$new" "$1"; then rm "$new"; else mv "$new" "$1"; fi
}
