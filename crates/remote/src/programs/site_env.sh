# shellcheck shell=bash
# What the site had set before the preamble: a batch script inherits the environment of sbatch (unless it says otherwise), and a
# training run must not find itself in the C locale or in another time zone because of us.
site_env=()
for name in LC_ALL TZ SLURM_TIME_FORMAT; do
  if [ -n "${!name+set}" ]; then site_env+=("$name=${!name}"); fi
done
