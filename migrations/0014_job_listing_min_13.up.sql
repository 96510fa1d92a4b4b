-- Lists of jobs count and filter by partition and by the rule of a failure.
alter table jobs add column partition text;                     -- where its newest run is, else those in which it may run, separated by commas
update jobs j
set partition = coalesce((select r.partition from runs r where r.job_id = j.id and r.attempt = j.attempt and r.task = 0),
                         j.spec ->> 'partitions');
-- Counts by status, cluster, owner and partition read this index alone. It also takes the place of jobs_owner_newest.
create index jobs_listing on jobs (owner, created_at desc, id desc) include (status, cluster, partition, attempt)
    where desired_state <> 'delete';
drop index jobs_owner_newest;
create index slurm_metadata_rule on slurm_metadata (job_id, attempt) include (rule) where rule is not null;
