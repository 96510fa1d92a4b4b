MASTER_ADDR=$(PATH=$_tao_path scontrol show hostnames "$SLURM_JOB_NODELIST" | PATH=$_tao_path head -n 1)
export MASTER_ADDR
if [ -z "$MASTER_ADDR" ]; then
  echo "tao-slurm: the first of the nodes '$SLURM_JOB_NODELIST' cannot be found out" >&2
  exit 122
fi
