alter table slurm_metadata drop column ahead_closed;
