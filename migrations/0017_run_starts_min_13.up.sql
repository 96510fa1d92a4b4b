-- Figures about the time in Slurm's queue look for the runs that started in a window, and read this index alone.
create index runs_started on runs (started_at) include (job_id, attempt, queued_since, partition) where started_at is not null;
