# shellcheck shell=bash
# The newest checkpoint in each of some directories.
#
# stdin: a line "number of directories"; for each a line "index, directory".

read -r count || give_up 'the list of directories did not arrive whole'
take_lines "$tmp/dirs" "$count" directories
while IFS=$'\t' read -r index dir; do
  if ((SECONDS >= 30)); then break; fi
  # Names with control characters could forge a line, so they are skipped.
  timeout -k 5 40 find -H "$dir" \( -name ptm -o -name inputs \) -prune -o -type f -size +0 ! -path '*[[:cntrl:]]*' \
    \( -path "$dir/*/*" \( -name 'checkpoint*.pth' -o -name 'model*.pth' -o -name 'latest*.pth' -o -name 'best*.pth' \
    -o -name 'epoch*.pth' \) -o ! -path "$dir/*/*" \( -name '*.pth' -o -name '*.ckpt' -o -name '*.tlt' \) \) \
    -printf '%T@\t%p\n' 2>/dev/null </dev/null | sort -t $'\t' -k1,1nr -k2,2r | head -n 1 | cut -f2- | tr -d '\n' >"$tmp/newest" || lost
  if [ -s "$tmp/newest" ]; then say "NEWEST $index $(encoded_tail "$tmp/newest" 5000)"; fi
done <"$tmp/dirs"
finish
