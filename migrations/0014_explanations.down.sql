drop table timeline;
alter table slurm_metadata drop column queued_since, drop column estimated_start;
