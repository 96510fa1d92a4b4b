# shellcheck shell=bash
# Whether a file is a complete SquashFS image: it begins with the magic and is as long as its superblock says (bytes 40
# to 47, little-endian; Documentation/filesystems/squashfs.rst of the kernel). mksquashfs writes the superblock last, so
# an incomplete file fails the check. $1: file.
whole_image() {
  local size used
  [ -f "$1" ] || return 1
  [ "$(timeout -k 1 10 head -c 4 -- "$1" 2>/dev/null </dev/null | od -A n -t x1 | tr -d ' ')" = 68737173 ] || return 1
  used=$(timeout -k 1 10 od -A n -t u8 -j 40 -N 8 -- "$1" 2>/dev/null </dev/null | tr -d ' ')
  size=$(stat -L -c %s -- "$1" 2>/dev/null)
  # No file has a size of 19 digits, which bash could read as negative.
  [ -n "$used" ] && [ "${#used}" -lt 19 ] && [ -n "$size" ] && [ "$used" -gt 0 ] && [ "$size" -ge "$used" ]
}
