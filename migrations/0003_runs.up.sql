-- Runs: what Slurm has of one task in one attempt. A job without an array has one task, number 0. A run that no poll has seen
-- has no row.
--
-- A run has one writer at a time: polls until one of them sees its end (`over`), then the step that concludes it.
create table runs (
    job_id          uuid        not null,
    attempt         integer     not null,
    task            integer     not null default 0 check (task >= 0), -- its index in Slurm's job array
    slurm_state     text,                                       -- Slurm's own word, such as PENDING
    exit_code       smallint,                                   -- of the batch script
    exit_signal     smallint,                                   -- the signal that ended it; 0: none
    nodes           text,                                       -- Slurm's own notation, such as node[01-03]
    reason          text,                                       -- Slurm's own reason for the state
    partition       text,                                       -- the partition that Slurm chose
    status_files    jsonb       not null default '{}',          -- domain::StatusFiles: a cursor for each file
    progress        jsonb       not null default '{}',          -- domain::Progress
    activity        jsonb,                                      -- domain::Activity, the last sign of life; null: not checked yet
    kill_reason     text,                                       -- why the service itself ends it; null: it does not
    queued_since    timestamptz,                                -- since when it waits in Slurm's queue, or waited before it last began
    estimated_start timestamptz,                                -- when Slurm expects to start it; null: Slurm gives no estimate
    started_at      timestamptz,                                -- when it began to run
    ended_at        timestamptz,                                -- when Slurm ended it
    missing_since   timestamptz,                                -- since when neither squeue nor sacct knows it
    requeues        integer     not null default 0,             -- how often Slurm requeued it: its restart count
    waits_again     boolean     not null default false,         -- it was requeued and has not started since
    source          text,                                       -- what its state comes from: domain::Source; null: not seen yet
    over            boolean     not null default false,         -- Slurm reports it finished

    primary key (job_id, attempt, task),
    foreign key (job_id, attempt) references slurm_metadata (job_id, attempt) on delete cascade,
    constraint exit_is_whole check ((exit_code is null) = (exit_signal is null))
);

insert into runs (job_id, attempt, slurm_state, exit_code, exit_signal, nodes, reason, partition, status_files, progress,
                  activity, kill_reason, queued_since, estimated_start, started_at, ended_at, missing_since, requeues,
                  waits_again, source, over)
select a.job_id, a.attempt, a.slurm_state, a.exit_code, a.exit_signal, a.nodes, a.reason, a.partition, a.status_files,
       case when is_newest then j.progress else '{}' end, case when is_newest then j.activity end,
       case when is_newest then j.kill_reason end, a.queued_since, a.estimated_start, a.started_at, a.ended_at,
       case when is_newest then j.missing_since end, a.requeues, a.requeue_unexplained,
       case when is_newest and a.slurm_state is not null then j.source end,
       not is_newest or j.phase not in ('submitting', 'submit_uncertain', 'in_queue', 'running', 'suspended')
from slurm_metadata a join jobs j on j.id = a.job_id, lateral (select a.attempt = j.attempt as is_newest) n;

alter table slurm_metadata
    add column tasks             text    not null default '0',  -- the tasks that it carries, in Slurm's notation
    add column explained_requeues integer not null default 0;   -- how many requeues of its runs are explained
update slurm_metadata set explained_requeues = requeues - requeue_unexplained::integer where requeues > 0;
alter table slurm_metadata
    drop column slurm_state, drop column exit_code, drop column exit_signal, drop column nodes, drop column reason,
    drop column partition, drop column status_files, drop column queued_since, drop column estimated_start,
    drop column started_at, drop column ended_at, drop column requeues, drop column requeue_unexplained;
alter table jobs
    drop column progress, drop column activity, drop column kill_reason, drop column missing_since;
