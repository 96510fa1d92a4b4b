# shellcheck shell=bash disable=SC2154 # the variables are settings
# enroot import: makes a SquashFS file of an image.

source "$library/registry.sh"

# enroot_import [-o FILE] [--] URI
enroot_import() {
  local output=''
  while (($#)); do
    case $1 in
    -o | --output) (($# > 1)) || usage 'import [options] [--] URI' && output=$2 && shift 2 ;;
    --output=*) output=${1#*=} && shift ;;
    -a | --arch) shift 2 ;;
    --) shift && break ;;
    -*) usage 'import [options] [--] URI' ;;
    *) break ;;
    esac
  done
  (($# == 1)) || usage 'import [options] [--] URI'
  case $1 in
  docker://*) import_from_registry "$1" "$output" ;;
  # A node has neither.
  dockerd://*) fail 'Command not found: docker' ;;
  podman://*) fail 'Command not found: podman' ;;
  *) fail "Invalid argument: $1" ;;
  esac
}

import_from_registry() {
  local user registry image tag tree output temporary authorized
  parse_reference "$1"
  output=$(canonical "${2:-${image//\//+}+$tag.sqsh}")
  [[ ! -e $output ]] || fail "File already exists: $output"
  temporary=$(umask 077 && mktemp -d -p "$ENROOT_TEMP_PATH" enroot.XXXXXXXXXX)
  # shellcheck disable=SC2064 # it is local
  trap "rm -rf '$temporary'" EXIT
  cd "$temporary" || exit
  authenticate
  fetch
  info 'Extracting image layers...'
  info 'Converting whiteouts...'
  info 'Creating squashfs filesystem...'
  mksquashfs "$tree" "$output" -all-root -no-progress -comp lzo -noD -exit-on-error >&2
}

# parse_reference URI: sets user, registry, image, tag.
# docker://[USER@]REGISTRY#IMAGE[:TAG][@DIGEST], or as Docker writes it.
parse_reference() {
  local rest=${1#docker://}
  user='' tag=latest
  if [[ $rest =~ ^([^/#@]+)@(.+)$ && ${BASH_REMATCH[2]} != sha256:* ]]; then
    user=${BASH_REMATCH[1]} rest=${BASH_REMATCH[2]}
  fi
  registry=registry-1.docker.io image=$rest
  if [[ $rest == *#* ]]; then
    registry=${rest%%#*} image=${rest#*#}
  elif [[ $rest =~ ^([^/]*[.:][^/]*)/(.+)$ ]]; then
    registry=${BASH_REMATCH[1]} image=${BASH_REMATCH[2]}
  fi
  if [[ $image == *@* ]]; then
    tag=${image##*@} image=${image%%@*} image=${image%:*}
  elif [[ $image == *:* ]]; then
    tag=${image#*:} image=${image%%:*}
  fi
  [[ $registry != registry-1.docker.io || $image == */* ]] || image=library/$image
  # The sandbox's registry is a directory, so no part may lead out of it.
  [[ $image =~ ^[a-z0-9._/-]+$ && $tag =~ ^[A-Za-z0-9._:-]+$ && $registry =~ ^[A-Za-z0-9.:-]+$ && /$registry/$image/$tag/ != */../* ]] ||
    fail "Invalid image reference: $1"
  tree=$(registry_tree)
  [[ -n $user ]] || user=$(credentials_user)
}
