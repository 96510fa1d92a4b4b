# shellcheck shell=bash
# One network namespace per node, and one with the bridge that connects them: in its own namespace,
# the host's firewall rules for forwarding do not affect the bridge.

node_addr() {
  local i
  for i in "${!NODES[@]}"; do
    [[ ${NODES[i]} != "$1" ]] || printf '%s.%s' "$SUBNET" $((11 + i))
  done
}

node_netns() { printf 'taosbx%s-%s' "$INSTANCE" "$1"; }

network_up() {
  local node ns addr
  if [[ ! -e /run/netns/$SWITCH ]]; then
    ip netns add "$SWITCH"
    ip -n "$SWITCH" link add br0 type bridge
    ip -n "$SWITCH" link set br0 up
  fi
  if [[ ! -e /sys/class/net/$LINK ]]; then
    ip link add "$LINK" type veth peer name host netns "$SWITCH"
    ip -n "$SWITCH" link set host master br0 up
    ip addr add "$CTL_ADDR/24" dev "$LINK"
    ip link set "$LINK" up
  fi
  for node in "${NODES[@]}"; do
    ns=$(node_netns "$node")
    [[ ! -e /run/netns/$ns ]] || continue
    addr=$(node_addr "$node")
    ip netns add "$ns"
    ip -n "$SWITCH" link add "$node" type veth peer name eth0 netns "$ns"
    ip -n "$SWITCH" link set "$node" master br0 up
    ip -n "$ns" -batch - <<IP
addr add $addr/24 dev eth0
link set eth0 up
link set lo up
route add default via $CTL_ADDR
IP
  done
}

network_down() {
  local node
  for node in "${NODES[@]}"; do
    network_remove "$(node_netns "$node")"
  done
  ip link del "$LINK" 2>/dev/null || true
  network_remove "$SWITCH"
  # The first `ip netns add` after boot bind-mounts this directory on itself.
  if [[ -z $(ls -A /run/netns 2>/dev/null) ]]; then
    umount /run/netns 2>/dev/null || true
  fi
}

network_remove() {
  [[ ! -e /run/netns/$1 ]] || ip netns del "$1" || rm -f "/run/netns/$1"
}

hosts_write() {
  local node i
  {
    printf '127.0.0.1 localhost\n%s ctl\n' "$CTL_ADDR"
    # Slurm needs an address of each login host that the nodes can reach.
    for i in "${LOGIN_HOSTS[@]}"; do printf '%s %s\n' "$CTL_ADDR" "$i"; done
    for node in "${NODES[@]}"; do printf '%s %s\n' "$(node_addr "$node")" "$node"; done
  } | replace "$SANDBOX_DIR/etc/hosts"
}
