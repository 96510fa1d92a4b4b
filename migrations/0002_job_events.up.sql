-- What happened to each job, in order; how far its status files were read; and whether it is alive.

alter table jobs
    add column events      bigint not null default 0,           -- the newest row's seq in job_events
    add column activity    jsonb,                               -- domain::Activity: the last sign of life; null: not looked at
    add column kill_reason text;                                -- why the service itself ends the job; null: it does not

alter table slurm_metadata add column status_files jsonb not null default '{}';  -- domain::StatusFiles: a cursor a file
-- A job that is running now is read again from the beginning: its lines were never kept until now.
alter table slurm_metadata drop constraint cursor_is_whole;
alter table slurm_metadata drop column status_path, drop column status_inode, drop column status_offset;

alter table cluster_polls add column unreachable_ms bigint not null default 0;  -- how long in all it could not be heard

create table job_events (
    job_id          uuid        not null references jobs (id) on delete cascade,
    seq             bigint      not null check (seq >= 1),      -- contiguous for each job
    id              bigint      not null generated always as identity,  -- rises over all jobs; a lower one may commit later
    at              timestamptz not null,                       -- when the service learned of it
    kind            text        not null,                       -- transition, status, events_truncated
    attempt         integer     not null,                       -- the newest at that time; 0: none yet
    file            text,                                       -- of a line: which status file, below the results
    earlier_run     boolean     not null default false,         -- of a line: written before the present run began
    data            jsonb       not null,

    primary key (job_id, seq)
);
create unique index job_events_id on job_events (id);

-- Transitions are recorded here and not by the statements, so that none can forget one. The number is taken before the
-- row is written and the event added after the statement: lines that the same statement adds come before the transition
-- that they caused, and the attempt that it adds is there to be asked for its Slurm id.
create function number_transition() returns trigger language plpgsql as $$
begin
    new.events := new.events + 1;
    return new;
end $$;

create function record_transition() returns trigger language plpgsql as $$
begin
    insert into job_events (job_id, seq, at, kind, attempt, data)
    values (new.id, new.events, new.last_modified, 'transition', new.attempt,
            jsonb_strip_nulls(jsonb_build_object(
                'status', new.status, 'phase', new.phase, 'message', new.message,
                'slurm_job_id', (select a.slurm_job_id::text from slurm_metadata a
                                 where a.job_id = new.id and a.attempt = new.attempt))));
    return null;
end $$;

create trigger jobs_number_first before insert on jobs for each row execute function number_transition();
create trigger jobs_record_first after insert on jobs for each row execute function record_transition();
create trigger jobs_number_transition before update on jobs for each row
    when ((old.status, old.phase, old.attempt) is distinct from (new.status, new.phase, new.attempt))
    execute function number_transition();
create trigger jobs_record_transition after update on jobs for each row
    when ((old.status, old.phase, old.attempt) is distinct from (new.status, new.phase, new.attempt))
    execute function record_transition();
