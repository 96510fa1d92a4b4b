-- Images of registries, converted into SquashFS files once for all the jobs that wait for them.

-- One row a place in a cluster's cache; with it the right to convert, by lease.
create table image_conversions (
    id              uuid        primary key default gen_random_uuid(),  -- in the Slurm job names: another database has others
    cluster         text        not null,
    cache_path      text        not null,                       -- where the file is made the first time
    image           text        not null,
    state           text        not null check (state in ('wanted', 'submitting', 'submit_uncertain', 'in_queue', 'running', 'finishing', 'ready', 'failed')),
    message         text        not null,                       -- what happens now; the jobs that wait say it too
    file            text,                                       -- the newest file that was seen whole
    file_seen_at    timestamptz,
    file_began_at   timestamptz,                                -- when the import that made it began; null for one that was found
    error           text,                                       -- why the last run failed
    failures        integer     not null default 0,             -- runs that failed, in a row
    retry_at        timestamptz,                                -- not tried again before
    mishaps         integer     not null default 0,             -- runs that the infrastructure ended, in a row
    abandoned       text        check (abandoned in ('unneeded', 'never_started')),  -- why it is being cancelled
    run             integer     not null default 0 check (run >= 0),  -- the newest run; 0: none yet. What follows is about it
    token           text        unique,                         -- its Slurm job name
    state_dir       text,
    target          text,                                       -- the file that it makes
    slurm_job_id    bigint      check (slurm_job_id > 0),
    slurm_state     text,
    exit_code       smallint,
    exit_signal     smallint,
    intended_at     timestamptz,
    sent_at         timestamptz,                                -- when a submission that may have reached Slurm was last sent
    submitted_at    timestamptz,
    queued_since    timestamptz,                                -- since when it waits in Slurm's queue; null while it runs
    began_at        timestamptz,
    finishing_since timestamptz,
    missing_since   timestamptz,
    retake          boolean     not null default false,         -- the claim on the cluster may be taken over
    setbacks        integer     not null default 0,
    absent_at       timestamptz,                                -- first clean look that found no trace
    version         bigint      not null default 1,             -- rises with every change
    due_at          timestamptz,                                -- when a worker has to take a step
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

-- Which conversion a job waits for, or has waited for: whether it still does is in the job's phase.
create table image_waits (
    job_id          uuid        primary key references jobs (id) on delete cascade,
    conversion_id   uuid        not null references image_conversions (id) on delete cascade,
    fresh           boolean     not null                        -- it wants the image as it is now, not as it was
);

create index image_waits_conversion on image_waits (conversion_id);

-- What an attempt was launched with, where it may be another than the job asked for.
alter table slurm_metadata
    add column image      text,                                 -- null: the job's own image, if it has one
    add column image_note text;                                 -- why it is not the cached file
