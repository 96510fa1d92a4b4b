# shellcheck shell=bash
# The environment before the preamble: a batch script inherits the environment of sbatch, and the preamble's locale and time
# zone must not reach the job.
site_env=()
for name in LC_ALL TZ SLURM_TIME_FORMAT; do
  if [ -n "${!name+set}" ]; then site_env+=("$name=${!name}"); fi
done
