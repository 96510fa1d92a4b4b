# shellcheck shell=bash
# Containers: the SPANK plugin, `enroot`, `apptainer`, the registry and its test image.

readonly IMAGE_HOST=registry.sandbox IMAGE=nvidia/tao/tao-toolkit IMAGE_TAG=6.26.3-pyt
readonly IMAGE_FILE=lustre/images/tao-toolkit.sqsh

containers_build() {
  enroot_build
  spank_build
  tools_build
  image_build
}

enroot_build() {
  local part
  install -d "$SANDBOX_DIR/enroot"
  for part in "$HERE"/enroot/*.sh; do replace "$SANDBOX_DIR/enroot/${part##*/}" <"$part"; done
  for part in mount switchroot; do
    is_newer "$SANDBOX_DIR/bin/enroot-$part" "$HERE/enroot/$part.c" ${ROOTFS:+"$ROOTFS/.made"} ||
      compile "enroot-$part" "$HERE/enroot/$part.c"
  done
  place "$HERE/enroot/enroot" "$HERE/enroot/apptainer"
}

# Puts programs into the path of the machines, where they may be running.
place() {
  local part
  for part; do
    install -m 755 "$part" "$SANDBOX_DIR/bin/${part##*/}.new"
    mv "$SANDBOX_DIR/bin/${part##*/}.new" "$SANDBOX_DIR/bin/${part##*/}"
  done
}

spank_build() {
  is_newer "$SANDBOX_DIR/bin/spank_pyxis.so" "$HERE"/spank/* ${ROOTFS:+"$ROOTFS/.made"} ||
    compile spank_pyxis.so -fPIC -shared -pthread "$HERE"/spank/*.c
}

tools_build() {
  is_newer "$SANDBOX_DIR/bin/complete-job" "$HERE"/tools/* ${ROOTFS:+"$ROOTFS/.made"} ||
    compile complete-job "$HERE/tools/complete-job.c" -lslurm
  place "$HERE/tools/nvidia-smi"
}

# compile NAME ARGUMENT...: compiles against the libslurm of the machines, into their path.
compile() {
  local target=$SANDBOX_DIR/bin/$1 where=()
  shift
  # gcc searches the host's library directories first, whatever its sysroot.
  [[ -z $ROOTFS ]] || where=("--sysroot=$ROOTFS" "-L$ROOTFS/usr/lib/$(gcc -print-multiarch)")
  gcc "${where[@]}" -std=gnu11 -O1 -Wall -Wextra -Werror -o "$target.new" "$@" \
    >"$SANDBOX_DIR/log/compile.log" 2>&1 ||
    die "${target##*/} failed to compile; see $SANDBOX_DIR/log/compile.log"
  mv "$target.new" "$target"
}

# is_newer FILE SOURCE...
is_newer() {
  local file=$1 source
  shift
  for source in "$@"; do
    [[ $file -nt $source ]] || return 1
  done
}

image_build() {
  local tree=$SANDBOX_DIR/registry/$IMAGE_HOST/$IMAGE/$IMAGE_TAG
  is_newer "$SANDBOX_DIR/$IMAGE_FILE" "$HERE"/image/* "$HERE/lib/images.sh" && return
  rm -rf "$tree" "$tree.new"
  image_tree "$tree.new"
  mv "$tree.new" "$tree"
  # Jobs may be using the image that this one replaces.
  rm -f "$SANDBOX_DIR/$IMAGE_FILE.new"
  mksquashfs "$tree" "$SANDBOX_DIR/$IMAGE_FILE.new" -all-root -no-progress -quiet \
    >"$SANDBOX_DIR/log/image.log" 2>&1 ||
    die "mksquashfs failed; see $SANDBOX_DIR/log/image.log"
  chown "$(ids "$LOGIN_USER")" "$SANDBOX_DIR/$IMAGE_FILE.new"
  mv "$SANDBOX_DIR/$IMAGE_FILE.new" "$SANDBOX_DIR/$IMAGE_FILE"
}

# busybox for most commands, and bash for launch scripts.
image_tree() {
  local root=$1 applet
  install -d "$root"/{bin,dev,etc,lib64,opt/sandbox,proc,root,run,sys,usr/local/bin,var/tmp,workspace}
  install -d -m 1777 "$root/tmp"
  ln -s ../bin "$root/usr/bin"
  ln -s bin "$root/sbin"
  install -m 755 /bin/busybox "$root/bin/busybox"
  # Relative links, because the tree is also read from outside.
  busybox --list | while read -r applet; do
    [[ $applet == busybox ]] || ln -s busybox "$root/bin/$applet"
  done
  install -m 755 /bin/bash "$root/bin/bash"
  image_libraries "$root" /bin/bash
  image_libraries "$root" /bin/busybox
  install -m 755 "$HERE/image/python" "$root/bin/python"
  install -m 644 "$HERE"/image/*.{sh,awk} "$root/opt/sandbox/"
  printf 'root:x:0:0:root:/root:/bin/sh\n' >"$root/etc/passwd"
  printf 'root:x:0:\n' >"$root/etc/group"
  printf 'NAME="TAO sandbox"\nID=tao-sandbox\nVERSION_ID=%s\n' "$IMAGE_TAG" >"$root/etc/os-release"
  install -m 644 "$HERE/image/environment" "$HERE/image/rc" "$root/etc/"
}

# Prints nothing for a statically linked program, such as busybox.
image_libraries() {
  local library
  { ldd "$2" 2>/dev/null || true; } | sed -n 's|^[^/]*\(/[^ ]*\).*|\1|p' | while read -r library; do
    install -D -m 755 "$library" "$1$library"
  done
}
