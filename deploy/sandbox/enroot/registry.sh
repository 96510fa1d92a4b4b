# shellcheck shell=bash disable=SC2154 # the variables are settings, or the caller's
# The sandbox's registry: HOST/IMAGE/TAG/ is the root tree of an image. Files beside it, and in HOST, make it misbehave;
# "Images" in the sandbox's README lists them.

registry_tree() { printf '%s' "${ENROOT_SANDBOX_REGISTRY:-${library%/*}/registry}/$registry/$image/$tag"; }

# curl_fails CODE MESSAGE: curl's message. enroot exits with curl's code.
curl_fails() {
  printf 'curl: (%s) %s\n' "$1" "$2" >&2
  exit "$1"
}

# http_fails CODE [URL]
http_fails() {
  local -A names=([401]=Unauthorized [403]=Forbidden [404]='Not Found' [500]='Internal Server Error'
    [502]='Bad Gateway' [503]='Service Unavailable' [504]='Gateway Time-out')
  fail "URL ${2:-$(url)} returned error code: $1 ${names[$1]-}"
}

url() {
  local scheme=https
  ! enabled ENROOT_ALLOW_HTTP || scheme=http
  printf '%s://%s/v2/%s/manifests/%s' "$scheme" "$registry" "$image" "$tag"
}

# Fails as curl does on the way to the registry.
connect() {
  local host=${registry%:*} port=443 proxy=${https_proxy:-${HTTPS_PROXY:-${all_proxy:-${ALL_PROXY-}}}} name kind code rest
  [[ $registry != *:* ]] || port=${registry##*:}
  if [[ -n $proxy ]] && ! without_proxy "$host"; then
    # There is none in the sandbox.
    name=${proxy#*://} name=${name%%/*} name=${name##*@}
    [[ $name == *:* ]] || name=$name:1080
    is_address "${name%:*}" || curl_fails 5 "Could not resolve proxy: ${name%:*}"
    curl_fails 7 "Failed to connect to ${name%:*} port ${name##*:} after 0 ms: Couldn't connect to server"
  fi
  if [[ ! -d ${tree%"/$image/$tag"} ]]; then
    is_address "$host" || curl_fails 6 "Could not resolve host: $host"
    curl_fails 7 "Failed to connect to $host port $port after 0 ms: Couldn't connect to server"
  fi
  [[ -f $tree.fails ]] || return 0
  read -r kind code rest <"$tree.fails"
  case $kind in
  curl) curl_fails "$code" "$rest" ;;
  http) http_fails "$code" ;;
  esac
}

is_address() { [[ $1 =~ ^[0-9.]+$ || $1 == localhost ]]; }

without_proxy() {
  local list=${no_proxy:-${NO_PROXY-}} one
  for one in ${list//,/ }; do
    one=${one#.}
    [[ $one != '*' && $1 != "$one" && $1 != *".$one" ]] || return 0
  done
  return 1
}

credentials_file() { printf '%s/.credentials' "$ENROOT_CONFIG_PATH"; }

# The login of the machine's first entry. The machine is compared without the registry's port.
credentials_user() {
  [[ -s $(credentials_file) ]] || return 0
  awk -v machine="${registry%:*}" '$1 == "machine" && $2 == machine && $3 == "login" { print $4; exit }' "$(credentials_file)"
}

# credentials_of USER: prints "LOGIN PASSWORD" of the machine's first entry, as curl reads it, if some entry has this login.
credentials_of() {
  local machine login word password='' found=no first=''
  while read -r word machine _ login _ password; do
    [[ $word == machine && $machine == "${registry%:*}" ]] || continue
    first=${first:-$login $(netrc_password "$password")}
    [[ $login != "$1" ]] || found=yes
  done < <(credentials_lines)
  [[ $found == yes ]] || return 1
  printf '%s' "$first"
}

credentials_lines() {
  # The last line may have no end.
  { cat "$(credentials_file)" && echo; } 2>/dev/null || true
}

# A shell expands a password that begins with $, and curl takes quotes as its own. A blank ends it.
netrc_password() {
  local text=$1
  [[ $text != '$'* ]] || text=$(sh -c "echo $text" 2>/dev/null)
  case $text in
  \"*) text=${text#\"} && text=${text%%\"*} ;;
  *) text=${text%%[[:space:]]*} ;;
  esac
  printf '%s' "$text"
}

# Sets authorized: whether the registry knows the user.
authenticate() {
  local host=${tree%"/$image/$tag"} scheme accepted='' given=''
  authorized=yes
  info 'Querying registry for permission grant'
  connect
  if [[ ! -e $host/.auth ]]; then
    [[ -d $tree/bin ]] || http_fails 404
    info 'Permission granted'
    return
  fi
  read -r scheme accepted <"$host/.auth"
  info "Authenticating with user: ${user:-<anonymous>}"
  if [[ -n $user ]] && given=$(credentials_of "$user"); then
    info "Using credentials from file: $(credentials_file)"
  fi
  if [[ $given != "$accepted" ]]; then
    authorized=no
    # Of Basic, the real program hides the registry's 401 and ends. Of Bearer, anybody gets some token without a login.
    [[ $scheme != Basic ]] || exit 1
    [[ -z $user ]] || http_fails 401 "https://$registry/proxy_auth"
  fi
  info 'Authentication succeeded'
}

# Downloads nothing, because the tree is there.
fetch() {
  local digest kind=''
  info 'Fetching image manifest list'
  info 'Fetching image manifest'
  [[ $authorized == yes ]] || http_fails 401
  [[ -d $tree/bin ]] || http_fails 404
  digest=$(stat -c '%n %i %Y' "$tree" | sha256sum)
  digest=${digest%% *}
  [[ ! -f $tree.fails ]] || read -r kind _ <"$tree.fails"
  if [[ -e $ENROOT_CACHE_PATH/$digest && $kind != checksum ]]; then
    info 'Found all layers in cache'
  else
    info 'Downloading 1 missing layers...'
  fi
  # A test holds a download up.
  while [[ -e $tree.held ]]; do sleep 0.1; done
  if [[ $kind == checksum ]]; then
    printf 'Checksum mismatch: %s\n' "$digest" >&2
    exit 1
  fi
  : >"$ENROOT_CACHE_PATH/$digest"
}
