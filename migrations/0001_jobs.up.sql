-- Jobs, their attempts, who polls which cluster, and who may call.
--
-- "None" is NULL everywhere: 'infinity' cannot be read back by the Rust types.

create table jobs (
    id              uuid primary key,
    owner           text        not null,                       -- the owner of the token that made it
    cluster         text        not null,                       -- a name from the configuration
    name            text,
    labels          jsonb       not null default '{}',
    network_arch    text,                                       -- with action: a TAO job; both null: a command
    action          text,
    spec            jsonb       not null,                       -- domain::JobSpec; holds no secret
    request_hash    bytea       not null,                       -- of the request, keyed (HMAC): the same id again must be the same job
    secrets         bytea,                                      -- sealed (AEAD); null when there are none or the job has ended
    desired_state          text        not null default 'run'  check (desired_state in ('run', 'cancel', 'pause', 'delete')),
    status          text        not null check (status in ('Pending', 'Started', 'Running', 'Done', 'Error', 'Canceling', 'Canceled', 'Pausing', 'Paused', 'Resuming')),
    phase           text        not null,
    message         text        not null,
    pending_reason  text,                                       -- Slurm's own word
    attempt         integer     not null default 0 check (attempt >= 0),  -- the newest row in slurm_metadata; 0: none yet
    retry_count     integer     not null default 0 check (retry_count >= 0),
    failures        jsonb       not null default '[]',          -- domain::PastFailure of each attempt that failed for the infrastructure
    progress        jsonb       not null default '{}',          -- domain::Progress
    missing_since   timestamptz,                                -- since when squeue and sacct both do not know it
    finishing_since timestamptz,                                -- since when its last words are being read
    created_at      timestamptz not null,
    submitted_at    timestamptz,
    started_at      timestamptz,
    finished_at     timestamptz,
    last_modified   timestamptz not null,
    observed_at     timestamptz,
    source          text        not null,
    version         bigint      not null default 1,             -- rises with every change; the ETag
    due_at          timestamptz,                                -- when a worker has to take a step; null: only the poll moves it
    lease_token     uuid,                                       -- the proof of the right to take that step; null when free
    lease_expires_at timestamptz,
    lease_attempts  integer     not null default 0,             -- acquisitions since the last clean release
    updated_by      text        not null default 'insert',      -- the statement that wrote the row last

    constraint lease_is_whole   check ((lease_token is null) = (lease_expires_at is null)),
    constraint ended_is_final   check ((phase = 'ended') = (status in ('Done', 'Error', 'Canceled'))),
    constraint ended_has_time   check ((phase = 'ended') = (finished_at is not null)),
    constraint ended_keeps_none check (phase <> 'ended' or (secrets is null and (due_at is null or desired_state = 'delete')))
);

-- What a worker takes next, and what a poll asks about.
create index jobs_due    on jobs (due_at) where due_at is not null;
create index jobs_active on jobs (cluster) where phase in ('in_queue', 'running', 'suspended');
-- Keyset pages, newest first.
create index jobs_newest on jobs (created_at desc, id desc);
create index jobs_owner_newest on jobs (owner, created_at desc, id desc);
create index jobs_labels on jobs using gin (labels jsonb_path_ops);

-- One row an attempt: the intent is stored before anything remote happens.
create table slurm_metadata (
    job_id          uuid        not null references jobs (id) on delete cascade,
    attempt         integer     not null check (attempt >= 1),
    token           text        not null unique,                -- the Slurm job name: finds a submission whose answer was lost
    job_dir         text        not null,                       -- the base directory of that time: the configured one may change
    slurm_job_id    bigint      check (slurm_job_id > 0),
    slurm_state     text,
    exit_code       smallint,
    exit_signal     smallint,
    nodes           text,                                       -- Slurm's own notation, such as node[01-03]
    reason          text,
    partition       text,
    script          text,                                       -- as submitted; holds no secret
    status_path     text,                                       -- how far the attempt's status.json was read
    status_inode    bigint,
    status_offset   bigint,
    intended_at     timestamptz not null,
    sent_at         timestamptz,                                -- when a submission that may have reached Slurm was last sent
    submitted_at    timestamptz,
    started_at      timestamptz,
    ended_at        timestamptz,
    retake          boolean     not null default false,         -- the claim on the cluster may be taken over
    setbacks        integer     not null default 0,             -- submissions without effect in a row
    absent_at       timestamptz,                                -- first clean look that found no trace
    excluded_nodes  text[]      not null default '{}',          -- what Slurm was told to keep away from
    requeues        integer     not null default 0,             -- how often Slurm put it back into its queue
    requeue_unexplained boolean not null default false,         -- it did, and why is not known yet
    concluded_at    timestamptz,                                -- when the verdict fell
    outcome         text        check (outcome in ('done', 'error', 'canceled', 'paused', 'retried')),
    why             text,                                       -- why it was or was not made again
    rule            text,                                       -- the rule that decided so
    matched_line    text,                                       -- the line of the log that it matched

    primary key (job_id, attempt),
    constraint cursor_is_whole check ((status_path is null) = (status_inode is null) and (status_path is null) = (status_offset is null)),
    constraint verdict_is_whole check ((concluded_at is null) = (outcome is null)),
    constraint exit_is_whole   check ((exit_code is null) = (exit_signal is null)),
    constraint submitted_has_id check ((submitted_at is null) = (slurm_job_id is null))
);

-- One poller a cluster, by lease.
create table cluster_polls (
    cluster         text        primary key,
    lease_token     uuid,
    lease_expires_at timestamptz,
    due_at          timestamptz not null default now(),
    polled_at       timestamptz,                                -- the last poll that was answered properly
    interval_ms     bigint      not null default 5000,          -- the pace at that time
    failures        integer     not null default 0,             -- unanswered polls since
    error           text,                                       -- why the last one was not answered

    constraint lease_is_whole check ((lease_token is null) = (lease_expires_at is null))
);

create table tokens (
    id              uuid        primary key,
    name            text        not null,
    owner           text        not null,
    hash            bytea       not null unique,                -- SHA-256 of the token; the token itself is shown once
    scopes          text[]      not null,
    created_at      timestamptz not null,
    expires_at      timestamptz,
    revoked_at      timestamptz
);
