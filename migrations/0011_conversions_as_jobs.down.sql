-- Older programs convert images in their own way. Jobs that convert are canceled; those that wait for them ask again.
drop trigger jobs_leave_conversion on jobs;
drop function leave_conversion;
create or replace function wake_needing() returns trigger language plpgsql as $$
declare
    -- One that goes again makes a look that has already begun look again.
    turns boolean := (old.phase = 'ended') <> (new.phase = 'ended') or (old.started_at is null and new.started_at is not null);
    waiting uuid;
    woken text;
begin
    for waiting in select distinct n.job_id from needs n where n.needed = new.id order by 1
    loop
        update jobs set due_at = now(), version = version + 1, updated_by = 'wake_needing'
        where id = waiting and phase <> 'ended'
          and (turns and phase = 'waiting' or array_state ->> 'held' <> '' or array_state ->> 'skipped' <> '')
        returning cluster || case phase when 'waiting' then ' submit' else '' end into woken;
        if found then
            perform pg_notify('tao_slurm_due', woken);
        end if;
    end loop;
    return null;
end $$;
delete from needs where place = -1;
alter table needs drop constraint needs_place_check;
alter table needs add constraint needs_place_check check (place >= 0);
update jobs
set desired_state = 'cancel', status = 'Canceling', due_at = now(), last_modified = now(),
    message = 'Canceling: this version of the service converts images in another way.', version = version + 1, updated_by = 'migration 11'
where owner = '' and phase <> 'ended' and desired_state in ('run', 'pause');
update jobs set due_at = now() where phase = 'converting_image';

create table image_conversions (
    id              uuid        primary key default gen_random_uuid(), -- part of the Slurm job names: unique across databases
    cluster         text        not null,
    cache_path      text        not null,                       -- where the first file is made
    image           text        not null,                       -- the registry's reference
    state           text        not null check (state in ('requested', 'submitting', 'submit_uncertain', 'in_queue', 'running', 'finishing', 'ready', 'failed')),
    message         text        not null,                       -- what happens now; waiting jobs show it too
    file            text,                                       -- the newest complete file
    file_seen_at    timestamptz,                                -- when it was last found; null: a job could not use it since
    file_began_at   timestamptz,                                -- when its import began; null: the service found the file
    damaged_files   text[]      not null default '{}',          -- files that jobs could not unpack; no job gets one
    damaged_at      timestamptz,                                -- when a job last found one
    error           text,                                       -- why the last run failed
    failures        integer     not null default 0,             -- consecutive failed runs
    infrastructure_failures integer not null default 0,         -- consecutive runs that the infrastructure ended
    retry_at        timestamptz,                                -- no retry before this time
    abandoned       text        check (abandoned in ('unneeded', 'never_started')), -- why it is being canceled
    -- The newest run.
    run             integer     not null default 0 check (run >= 0), -- its number; 0: none yet
    token           text        unique,                         -- its Slurm job name
    state_dir       text,                                       -- its directory on the cluster
    target          text,                                       -- the file that it makes
    slurm_job_id    bigint      check (slurm_job_id > 0),       -- null: Slurm has not accepted it yet
    slurm_state     text,                                       -- Slurm's own word
    exit_code       smallint,                                   -- of the batch script
    exit_signal     smallint,                                   -- the signal that ended it; 0: none
    intended_at     timestamptz,                                -- when the run was stored
    submit_fence    integer     not null default 0,
    submit_fence_cleared integer not null default 0,
    submit_fence_shut_at timestamptz,
    absent_at       timestamptz,
    failed_submissions integer  not null default 0,
    submitted_at    timestamptz,                                -- when Slurm accepted it
    queued_since    timestamptz,                                -- since when it waits in Slurm's queue; null: it runs
    began_at        timestamptz,                                -- when it began to run
    finishing_since timestamptz,                                -- since when its exit code and file are being collected
    missing_since   timestamptz,                                -- since when neither squeue nor sacct knows it
    version         bigint      not null default 1,             -- rises with every change
    due_at          timestamptz,
    lease_token     uuid,
    lease_expires_at timestamptz,
    updated_by      text        not null default 'insert',      -- the statement that wrote the row last

    unique (cluster, cache_path),
    constraint lease_is_whole check ((lease_token is null) = (lease_expires_at is null)),
    constraint run_is_whole   check ((run = 0) = (token is null) and (run = 0) = (state_dir is null)
                                     and (run = 0) = (target is null) and (run = 0) = (intended_at is null)),
    constraint exit_is_whole  check ((exit_code is null) = (exit_signal is null)),
    constraint ready_has_file check (state <> 'ready' or file is not null)
);

create index image_conversions_due    on image_conversions (due_at) where due_at is not null;
create index image_conversions_active on image_conversions (cluster) where state in ('in_queue', 'running');

-- Which conversion a job waits for, or has waited for. The job's phase says whether it still waits.
create table image_waits (
    job_id          uuid        primary key references jobs (id) on delete cascade,
    conversion_id   uuid        not null references image_conversions (id) on delete cascade,
    fresh           boolean     not null                        -- the job needs the image as the registry has it now
);

create index image_waits_conversion on image_waits (conversion_id);
insert into image_conversions (cluster, cache_path, image, state, message, file, file_seen_at, file_began_at, damaged_files, damaged_at, error,
                               failures, retry_at)
select cluster, cache_path, image, case when file is null then 'requested' else 'ready' end, 'Checking the cache for the image.', file,
       file_seen_at, file_began_at, damaged_files, damaged_at, error, failures, retry_at
from cached_images;
drop table cached_images;
