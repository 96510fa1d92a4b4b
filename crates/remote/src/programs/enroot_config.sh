# shellcheck shell=bash
# Where enroot looks for credentials (enroot(1), ENROOT_CONFIG_PATH).
credentials=${ENROOT_CONFIG_PATH:-${XDG_CONFIG_HOME:-${HOME:-}/.config}/enroot}/.credentials

# The names of the machines in a netrc file, one on each line. $1: file.
machines() {
  tr -s '[:space:]' '\n' <"$1" | awk '
    want == "machine" { print; want = ""; next }
    want != "" { want = ""; next }
    $0 == "machine" || $0 == "login" || $0 == "password" || $0 == "account" || $0 == "macdef" { want = $0 }' \
    | grep -E '^[A-Za-z0-9._:@/-]{1,253}$' | head -n 100
}
