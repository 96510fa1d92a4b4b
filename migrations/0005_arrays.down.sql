drop index jobs_arrays;
drop index runs_retried;
alter table runs drop column over_since, drop column outcome, drop column message, drop column superseded;
alter table slurm_metadata drop column base;
alter table jobs drop column array_state;
