# shellcheck shell=bash disable=SC2154 # `work` and `sandbox` are the caller's
# A Debian in a container of systemd-nspawn. It reaches only the login hosts of this machine's network, each at its own address,
# through a socket in a shared directory.

readonly HOST_PACKAGES=(systemd-container debootstrap jq openssl python3)
readonly GUEST_PACKAGES=(systemd systemd-sysv dbus postgresql openssh-client haproxy)
readonly PROXY=/lib/systemd/systemd-socket-proxyd
machine=$work/machine
background=()

machine_prepare() {
    local missing=() package
    for package in "${HOST_PACKAGES[@]}"; do
        dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
    done
    if ((${#missing[@]})); then
        note "installing ${missing[*]}"
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$work/packages.log"
    fi
    debian_make
    # Each trial has its own copy, and each machine its own identity.
    rm -rf --one-file-system "$machine"
    cp -a "$debian" "$machine"
    tr -d - </proc/sys/kernel/random/uuid >"$machine/etc/machine-id"
    mkdir -p "$work/clone" "$machine/root/tao-slurm"
}

# The same Debian release as this machine's, so that programs built here run there. It stays for the next trial.
debian_make() {
    local codename mirror
    codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    debian=$work/debian-$codename-$(echo "${GUEST_PACKAGES[*]}" | sha256sum | cut -c1-8)
    [[ ! -e $debian/.made ]] || return 0
    note "creating $debian (once, a few minutes)"
    # Use this host's mirror. If apt does not know one, debootstrap does.
    # shellcheck disable=SC2016 # apt fills in these, not the shell
    mirror=$(apt-get indextargets --no-release-info --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        sed -n "s/ $codename main\$//p" | head -n 1)
    rm -rf --one-file-system "$work"/debian-*
    # Own namespaces remove all mounts and processes at the end. Postgres creates its databases with this locale.
    # shellcheck disable=SC2016 # expanded by the inner shell
    setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --propagation private -- bash -euo pipefail -c '
        root=$1 codename=$2 mirror=$3
        shift 3
        debootstrap --variant=minbase "$codename" "$root" ${mirror:+"$mirror"}
        apt-config dump | grep -iE "^Acquire::https?::Proxy" >"$root/etc/apt/apt.conf.d/90trial" || true
        cp -L /etc/resolv.conf "$root/etc/resolv.conf"
        mount -t proc proc "$root/proc"
        chroot "$root" env DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8 apt-get install -y -qq --no-install-recommends "$@"
        umount "$root/proc"
        chroot "$root" apt-get clean
    ' bash "$debian" "$codename" "$mirror" "${GUEST_PACKAGES[@]}" >"$work/debian.log" 2>&1 </dev/null ||
        die "Debian could not be created; see $work/debian.log"
    touch "$debian/.made"
}

machine_boot() {
    network_make
    local options=(
        --quiet "--directory=$machine" "--machine=tao-slurm-trial-$$" --boot --console=read-only
        --private-network "--bind=$network:/srv/network" "--bind-ro=$work/clone:/root/tao-slurm"
        --settings=no --register=no --resolv-conf=off --timezone=off --link-journal=no
    )
    # Without systemd on this machine no control group can be requested.
    [[ -d /run/systemd/system ]] || options+=(--keep-unit)
    # Use control groups v2, whatever this machine uses. The container dies with the trial.
    # shellcheck disable=SC2016 # expanded by the inner shell
    setpriv --pdeathsig TERM unshare --mount --propagation private -- bash -euc '
        if [[ ! -d /run/systemd/system ]]; then
            mount -t cgroup2 cgroup2 /sys/fs/cgroup
            mkdir "/sys/fs/cgroup/tao-slurm-trial-$$"
            echo "$$" >"/sys/fs/cgroup/tao-slurm-trial-$$/cgroup.procs"
        fi
        exec setpriv --pdeathsig TERM systemd-nspawn "$@"
    ' bash "${options[@]}" >"$work/console.log" 2>&1 </dev/null {lock}>&- &
    nspawn=$!
    await 60 machine_is_up || { tail -n 20 "$work/console.log" >&2; die "the machine did not come up; see $work/console.log"; }
}

machine_is_up() {
    kill -0 "$nspawn" 2>/dev/null || die "systemd-nspawn ended: $(tail -n 3 "$work/console.log")"
    leader=$(pgrep --parent "$nspawn" --exact systemd) && [[ $(in_machine systemctl is-system-running 2>/dev/null) == running ]]
}

in_machine() {
    nsenter --target "$leader" --all -- env --ignore-environment --chdir=/root/tao-slurm HOME=/root LANG=C.UTF-8 \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin ${token:+"TAO_SLURM_TOKEN=$token"} "$@" </dev/null
}

# in_network COMMAND...: runs a program of this machine on the container's network.
in_network() { nsenter --target "$leader" --net -- "$@"; }

network_make() {
    local host number=0 hosts
    network=$(mktemp -d /run/tao-slurm-trial.XXXXXX)
    # shellcheck source=/dev/null
    IFS=, read -ra hosts < <(. "$sandbox/env" && echo "$SLURM_HOSTNAME")
    mkdir -p "$machine/etc/systemd/system/sockets.target.wants"
    for host in "${hosts[@]}"; do
        number=$((number + 1))
        setpriv --pdeathsig TERM systemd-socket-activate --listen="$network/login$number" "$PROXY" "$host" \
            >"$work/network.log" 2>&1 </dev/null {lock}>&- &
        background+=($!)
        printf '[Socket]\nListenStream=%s\n' "$host" >"$machine/etc/systemd/system/login$number.socket"
        printf '[Service]\nExecStart=%s /srv/network/login%s\n' "$PROXY" "$number" >"$machine/etc/systemd/system/login$number.service"
        ln -s "../login$number.socket" "$machine/etc/systemd/system/sockets.target.wants/"
    done
}

# Stops cleanly if possible, and removes all traces.
machine_stop() {
    local pid
    if [[ -n ${nspawn:-} ]]; then
        [[ -z ${leader:-} ]] || in_machine journalctl --no-pager --output=short-iso >"$work/journal.log" 2>/dev/null || true
        kill -TERM "$nspawn" 2>/dev/null || true
        await 60 machine_is_down || kill -KILL "$nspawn" 2>/dev/null || true
        wait "$nspawn" 2>/dev/null || true
        find /sys/fs/cgroup{,/unified}/"tao-slurm-trial-$nspawn" -depth -type d -exec rmdir {} + 2>/dev/null || true
        rmdir "/run/systemd/nspawn/propagate/tao-slurm-trial-$$" 2>/dev/null || true
    fi
    for pid in "${background[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
    [[ -z ${network:-} ]] || rm -rf "$network"
    rm -rf --one-file-system "$machine" "$work/clone" "$work"/said*
}

machine_is_down() { ! kill -0 "$nspawn" 2>/dev/null; }
