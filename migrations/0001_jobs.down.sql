drop table tokens;
drop table cluster_polls;
drop table slurm_metadata;
drop table jobs;
