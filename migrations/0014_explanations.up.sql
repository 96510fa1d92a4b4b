-- Why and how long a job waits in Slurm's queue, and what was done for it on its cluster.

alter table slurm_metadata
    add column queued_since    timestamptz,                     -- since when it is in Slurm's queue, or was before it last began
    add column estimated_start timestamptz;                     -- when Slurm expects to start it; null while it does not say

-- Remote commands, each once for each job that it was for. Losing some is allowed, since nothing is decided by them.
create table timeline (
    id              bigint      generated always as identity primary key,
    job_id          uuid        references jobs (id) on delete cascade,  -- null: a poll, which is for all that Slurm has of ours there
    cluster         text        not null,
    attempt         integer     check (attempt >= 1),
    class           text        not null,                       -- which command
    host            text,                                       -- the login host that answered; null: none did
    started_at      timestamptz not null,
    duration_ms     bigint      not null check (duration_ms >= 0),
    result          text        not null,                       -- ok, or the class of its failure
    exit_code       integer,                                    -- of the remote program
    bytes           bigint      check (bytes >= 0),             -- of the answer
    jobs            integer     not null check (jobs >= 0),     -- how many the command was for
    outcome         text                                        -- what came of it for this job
);

create index timeline_of_job     on timeline (job_id, started_at, id) where job_id is not null;
create index timeline_of_cluster on timeline (cluster, started_at, id) where job_id is null;
