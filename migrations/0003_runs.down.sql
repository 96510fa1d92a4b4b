-- Columns come back at the end of their tables, with the data of task 0.
alter table jobs
    add column progress      jsonb not null default '{}',
    add column activity      jsonb,
    add column kill_reason   text,
    add column missing_since timestamptz;
alter table slurm_metadata
    add column slurm_state     text,
    add column exit_code       smallint,
    add column exit_signal     smallint,
    add column nodes           text,
    add column reason          text,
    add column partition       text,
    add column status_files    jsonb not null default '{}',
    add column queued_since    timestamptz,
    add column estimated_start timestamptz,
    add column started_at      timestamptz,
    add column ended_at        timestamptz,
    add column requeues        integer not null default 0,
    add column requeue_unexplained boolean not null default false,
    add constraint exit_is_whole check ((exit_code is null) = (exit_signal is null));
update jobs j
set progress = r.progress, activity = r.activity, kill_reason = r.kill_reason, missing_since = r.missing_since
from runs r where r.job_id = j.id and r.attempt = j.attempt and r.task = 0;
update slurm_metadata a
set slurm_state = r.slurm_state, exit_code = r.exit_code, exit_signal = r.exit_signal, nodes = r.nodes, reason = r.reason,
    partition = r.partition, status_files = r.status_files, queued_since = r.queued_since,
    estimated_start = r.estimated_start, started_at = r.started_at, ended_at = r.ended_at, requeues = r.requeues,
    requeue_unexplained = r.waits_again and r.requeues > a.explained_requeues
from runs r where r.job_id = a.job_id and r.attempt = a.attempt and r.task = 0;
alter table slurm_metadata drop column tasks, drop column explained_requeues;
drop table runs;
