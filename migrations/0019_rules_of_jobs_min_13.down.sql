create index slurm_metadata_rule on slurm_metadata (job_id, attempt) include (rule) where rule is not null;
drop index jobs_listing;
create index jobs_listing on jobs (owner, created_at desc, id desc) include (status, cluster, partition, attempt)
    where desired_state <> 'delete';
drop trigger jobs_note_rule on jobs;
drop function note_rule();
drop function failure_rule(uuid, integer, boolean);
drop index runs_failed;
alter table jobs drop column rule;
