-- Jobs with an array: several attempts of a job are in Slurm at once, each with many runs.

alter table jobs
    add column array_state jsonb;                               -- domain::ArrayState; null: the job has one task
alter table slurm_metadata
    add column base integer not null default 0 check (base >= 0); -- the task that index 0 of its Slurm array stands for
alter table runs
    add column over_since  timestamptz,                         -- of an array: since when its exit code and logs are collected
    add column outcome     text check (outcome in ('done', 'error', 'canceled', 'retried')), -- of an array: how the task ended in it
    add column message     text,                                -- of an array: why, for people
    add column superseded  boolean not null default false;      -- of an array: another attempt carries the task
-- Polls look for the arrays of their cluster.
create index jobs_arrays on jobs (cluster) where array_state is not null and phase <> 'ended';
-- How often a task was retried.
create index runs_retried on runs (job_id, task) where outcome = 'retried';
