# shellcheck shell=bash
# The authentication daemon, with its own key and socket.

# Slurm's default path; our directory is mounted there on the machines of the cluster.
readonly MUNGE_SOCKET=/run/munge/munge.socket.2

munge_up() {
  alive munged && return
  local dir=$SANDBOX_DIR/munge
  if [[ ! -s $dir/key ]]; then
    (umask 077 && head -c 128 /dev/urandom >"$dir/key")
    chown "$(ids munge)" "$dir/key"
  fi
  # After a crash the old socket and its lock prevent a start.
  rm -f "$SANDBOX_DIR"/run/munge/*
  launch munged ctl setpriv --reuid=munge --regid=munge --init-groups \
    munged --foreground --num-threads=4 --key-file="$VIEW/munge/key" --socket="$MUNGE_SOCKET" \
    --pid-file=/run/munge/munged.pid --seed-file="$VIEW/munge/seed" \
    --log-file="$VIEW/log/munge/munged.log"
  await_daemon munged 10 test -S "$SANDBOX_DIR/run/munge/${MUNGE_SOCKET##*/}"
}
