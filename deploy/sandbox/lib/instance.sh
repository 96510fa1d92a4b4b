# shellcheck shell=bash disable=SC2034 # the other parts use what is set here
# The number of a sandbox on this machine, and the addresses and names derived from it.

readonly LAST_INSTANCE=99

instance_derive() {
  INSTANCE=$1
  local port=$((17000 + INSTANCE * 10))
  SSH_PORT=$port
  SLURMCTLD_PORT=$((port + 1))
  SLURMDBD_PORT=$((port + 2))
  POSTGRES_PORT=$((port + 3))
  LOGIN_ADDR=("127.77.$INSTANCE.1" "127.77.$INSTANCE.2")
  SUBNET=10.77.$INSTANCE
  CTL_ADDR=$SUBNET.1
  LINK=taosbx$INSTANCE
  SWITCH=taosbx$INSTANCE-switch
}

# Reads the number of this sandbox; fails if it has none.
instance_load() {
  [[ -s $SANDBOX_DIR/instance ]] || return 1
  instance_derive "$(<"$SANDBOX_DIR/instance")"
}

# Claims the stored number if it is still free, otherwise the lowest free one.
instance_claim() {
  install -d "$RUN_DIR"
  local lock n remembered
  remembered=$(cat "$SANDBOX_DIR/instance" 2>/dev/null || true)
  exec {lock}>"$RUN_DIR/lock"
  flock "$lock"
  for n in $remembered $(seq "$LAST_INSTANCE"); do
    instance_derive "$n"
    if [[ $(cat "$RUN_DIR/$n.owner" 2>/dev/null) == "$SANDBOX_DIR" ]] || instance_is_free; then
      printf '%s\n' "$SANDBOX_DIR" >"$RUN_DIR/$n.owner"
      printf '%s\n' "$n" >"$SANDBOX_DIR/instance"
      exec {lock}>&-
      return
    fi
  done
  die "no free instance number; stop a sandbox of $RUN_DIR/*.owner"
}

instance_is_free() {
  local owner port
  # If the directory is deleted without `reset`, the claim remains.
  if owner=$(cat "$RUN_DIR/$INSTANCE.owner" 2>/dev/null); then
    [[ $(cat "$owner/instance" 2>/dev/null) != "$INSTANCE" ]] || return 1
  fi
  for port in $SSH_PORT $SLURMCTLD_PORT $SLURMDBD_PORT $POSTGRES_PORT; do
    [[ -z $(ss -Hltn "sport = :$port") ]] || return 1
  done
  [[ -z $(ip -4 route show "$SUBNET.0/24") ]]
}

instance_release() {
  rm -f "$RUN_DIR/$INSTANCE.owner"
}
