MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR
if [ -z "$MASTER_ADDR" ]; then
  echo "tao-slurm: the first of the nodes '$SLURM_JOB_NODELIST' cannot be found out" >&2
  exit 122
fi
