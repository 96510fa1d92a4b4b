# shellcheck shell=bash
# The environment before the preamble: a batch script inherits the environment of sbatch, and what the preamble changes must
# not reach the job.
site_env=()
for name in LC_ALL TZ SLURM_TIME_FORMAT POSIXLY_CORRECT GREP_OPTIONS; do
  if [ -n "${!name+set}" ]; then site_env+=("$name=${!name}"); fi
done
