# shellcheck shell=bash
# How much some jobs have written: one find for all of them, of which only sums are kept.

# Prints for each job the number of its files, their bytes, and when the newest was written; nothing for a job whose
# directories could not be searched to the end. $1: file of lines "index TAB directory", several for a job.
say_signs_of_life() {
  # shellcheck disable=SC2016
  search "$1" 20 'set -o pipefail
    find "$@" -type f -printf "%H\t%s\t%T@\n" | awk -F"\t" "
      { files[\$1]++; bytes[\$1] += \$2; if (\$3 + 0 > newest[\$1]) newest[\$1] = \$3 + 0 }
      END { for (d in files) printf \"%d\t%.0f\t%.0f\t%s\n\", files[d], bytes[d], newest[d] * 1000000, d }"'
  awk -F'\t' '
    pass == 1 { unsearched[$1]; next }
    pass == 2 { files[$4] = $1; bytes[$4] = $2; newest[$4] = $3; next }
    {
      jobs[$1]
      f[$1] += files[$2]
      b[$1] += bytes[$2]
      if (newest[$2] + 0 > n[$1]) n[$1] = newest[$2] + 0
    }
    END { for (j in jobs) if (!(j in unsearched)) printf "ALIVE %s %d %.0f %.0f\n", j, f[j], b[j], n[j] }' \
    pass=1 "$tmp/unsearched" pass=2 "$tmp/found" pass=3 "$1" >"$tmp/signs" || lost
  say_file "$tmp/signs"
}
