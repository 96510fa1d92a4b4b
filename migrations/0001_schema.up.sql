-- The schema of tao-slurm. One section for each family of tables: jobs, events, clusters, images, remote commands, callers,
-- webhooks.
--
-- NULL means "none" everywhere: the Rust types cannot read 'infinity'.
--
-- A lease is the right to act on a row until a time. The columns of a lease are the same in every table:
--   due_at              when a worker takes the next step; null: no step is due
--   lease_token         proves the right to take that step; null: the row is free
--   lease_expires_at    when the right ends, by Postgres's clock
-- The columns of the submit fence are the same for attempts and for conversions:
--   submit_fence            the number of the newest submission; 0: none yet
--   submit_fence_cleared    submissions up to this number are over and had no effect
--   submit_fence_shut_at    when a search on the cluster first made sure that none of them can begin any more
--   absent_at               when a search first found no trace of the submission
--   failed_submissions      consecutive submissions without effect

------------------------------------------------------------------------------------------------------------------------
-- Jobs
------------------------------------------------------------------------------------------------------------------------

create table jobs (
    id              uuid        primary key,
    owner           text        not null,                       -- the owner of the token that created the job
    cluster         text        not null,                       -- a cluster of the configuration file or of the table clusters
    name            text,                                       -- a name for people
    labels          jsonb       not null default '{}',          -- the owner's labels, for filters
    network_arch    text,                                       -- of a TAO job, together with action; both are null for a command
    action          text,                                       -- of a TAO job
    spec            jsonb       not null,                       -- domain::JobSpec; holds no secret
    request_hash    bytea       not null,                       -- HMAC of the request: a second request with this id has to be the same
    secrets         bytea,                                      -- sealed (AEAD); null: the job has no secrets, or has ended
    desired_state   text        not null default 'run' check (desired_state in ('run', 'cancel', 'pause', 'delete')), -- what the owner wants
    status          text        not null check (status in ('Pending', 'Started', 'Running', 'Done', 'Error', 'Canceling', 'Canceled', 'Pausing', 'Paused', 'Resuming')), -- as TAO shows it
    phase           text        not null,                       -- domain::Phase: the exact place in the life of the job
    message         text        not null,                       -- what happens now and why, for people
    pending_reason  text,                                       -- Slurm's own word for why the job waits
    attempt         integer     not null default 0 check (attempt >= 0), -- number of the newest row in slurm_metadata; 0: none yet
    retry_count     integer     not null default 0 check (retry_count >= 0), -- how often the service has retried it
    failures        jsonb       not null default '[]',          -- domain::PastFailure for each attempt that the infrastructure ended
    progress        jsonb       not null default '{}',          -- domain::Progress
    activity        jsonb,                                      -- domain::Activity, the last sign of life; null: not checked yet
    kill_reason     text,                                       -- why the service itself ends the job; null: it does not
    missing_since   timestamptz,                                -- since when neither squeue nor sacct knows the job
    finishing_since timestamptz,                                -- since when its exit code and logs are being collected
    purges_failed   integer     not null default 0,             -- failed tries to remove the files of a deleted job; they are limited
    created_at      timestamptz not null,                       -- when the request was accepted
    submitted_at    timestamptz,                                -- when Slurm accepted it first
    started_at      timestamptz,                                -- when it began to run
    finished_at     timestamptz,                                -- when it ended
    last_modified   timestamptz not null,                       -- when this row changed last
    observed_at     timestamptz,                                -- the poll or step that the state comes from
    source          text        not null,                       -- what that state comes from: domain::Source
    version         bigint      not null default 1,             -- rises with every change; the ETag
    events          bigint      not null default 0,             -- seq of the newest row in job_events
    due_at          timestamptz,                                -- null: only a poll moves the job
    lease_token     uuid,
    lease_expires_at timestamptz,
    lease_attempts  integer     not null default 0,             -- leases taken since a step was last completed
    updated_by      text        not null default 'insert',      -- the statement that wrote the row last

    constraint lease_is_whole   check ((lease_token is null) = (lease_expires_at is null)),
    constraint ended_is_final   check ((phase = 'ended') = (status in ('Done', 'Error', 'Canceled'))),
    constraint ended_has_time   check ((phase = 'ended') = (finished_at is not null)),
    constraint ended_keeps_none check (phase <> 'ended' or (secrets is null and (due_at is null or desired_state = 'delete')))
);

-- Workers look for due jobs; polls ask about active ones.
create index jobs_due    on jobs (due_at) where due_at is not null;
create index jobs_active on jobs (cluster) where phase in ('in_queue', 'running', 'suspended');
-- Keyset pages, newest first.
create index jobs_newest on jobs (created_at desc, id desc);
create index jobs_owner_newest on jobs (owner, created_at desc, id desc);
create index jobs_labels on jobs using gin (labels jsonb_path_ops);
-- TAO's own services look up a job by its results directory. Hashed, because a path may be of any length.
create index jobs_results_dir on jobs using hash ((spec #>> '{work,specs,results_dir}'));
-- Finished jobs are deleted after some time (database.keep_ended_jobs), oldest first.
create index jobs_finished on jobs (finished_at) where finished_at is not null;

-- Attempts: one row for each intent to submit a job to Slurm. It is stored before anything happens on the cluster.
create table slurm_metadata (
    job_id          uuid        not null references jobs (id) on delete cascade,
    attempt         integer     not null check (attempt >= 1),  -- counted from 1 for each job
    token           text        not null unique,                -- the Slurm job name: finds a submission whose reply was lost
    job_dir         text        not null,                       -- the base directory at that time: the configured one may change
    slurm_job_id    bigint      check (slurm_job_id > 0),       -- null: Slurm has not accepted it yet
    slurm_state     text,                                       -- Slurm's own word, such as PENDING
    exit_code       smallint,                                   -- of the batch script
    exit_signal     smallint,                                   -- the signal that ended it; 0: none
    nodes           text,                                       -- Slurm's own notation, such as node[01-03]
    reason          text,                                       -- Slurm's own reason for the state
    partition       text,                                       -- the partition that Slurm chose
    script          text,                                       -- the batch script as submitted; holds no secret
    image           text,                                       -- the image it was launched with; null: the job's own, if it has one
    image_note      text,                                       -- why that is not the cached file
    status_files    jsonb       not null default '{}',          -- domain::StatusFiles: a cursor for each file
    intended_at     timestamptz not null,                       -- when this row was added
    submit_fence    integer     not null default 0,
    submit_fence_cleared integer not null default 0,
    submit_fence_shut_at timestamptz,
    absent_at       timestamptz,
    failed_submissions integer  not null default 0,
    submitted_at    timestamptz,                                -- when Slurm accepted it
    queued_since    timestamptz,                                -- since when it waits in Slurm's queue, or waited before it last began
    estimated_start timestamptz,                                -- when Slurm expects to start it; null: Slurm gives no estimate
    started_at      timestamptz,                                -- when it began to run
    ended_at        timestamptz,                                -- when Slurm ended it
    excluded_nodes  text[]      not null default '{}',          -- nodes that Slurm has to avoid
    requeues        integer     not null default 0,             -- how often Slurm requeued it
    requeue_unexplained boolean not null default false,         -- it was requeued, and the reason is not known yet
    concluded_at    timestamptz,                                -- when the verdict was decided
    outcome         text        check (outcome in ('done', 'error', 'canceled', 'paused', 'retried')), -- the verdict
    why             text,                                       -- why it was retried or not
    rule            text,                                       -- the rule that decided this
    matched_line    text,                                       -- the log line that the rule matched

    primary key (job_id, attempt),
    constraint verdict_is_whole check ((concluded_at is null) = (outcome is null)),
    constraint exit_is_whole    check ((exit_code is null) = (exit_signal is null)),
    constraint submitted_has_id check ((submitted_at is null) = (slurm_job_id is null))
);

-- LZ4 takes a tenth of the time for texts of some kilobytes: with the default, storing a batch script took longer than
-- accepting its job. Compression stays the default on a server without LZ4. `jobs` comes first, as in all other statements
-- that lock both tables.
do $$ begin
    execute 'alter table jobs alter column spec set compression lz4';
    execute 'alter table slurm_metadata alter column script set compression lz4';
exception
    -- The server was built without LZ4, or is older than version 14 and does not know the syntax.
    when feature_not_supported or syntax_error then null;
end $$;

-- The ids of deleted jobs. Files and accounting records on the cluster still bear the id of a deleted job, so no other job
-- may use it. A row is also the last event of its job: the other events are deleted with the job.
create table deleted_jobs (
    id              uuid        primary key,
    deleted_at      timestamptz not null default now(),
    owner           text        not null,                       -- of the job, as in all columns below
    cluster         text        not null,
    attempt         integer     not null,                       -- its newest attempt
    seq             bigint      not null,                       -- the number of this event among those of the job
    position        bigint                                      -- as in job_events
);
create unique index deleted_jobs_position on deleted_jobs (position);
create index deleted_jobs_unplaced on deleted_jobs (deleted_at, id) where position is null;

-- A trigger, so that no statement can omit it.
create function record_deleted_job() returns trigger language plpgsql as $$
begin
    insert into deleted_jobs (id, owner, cluster, attempt, seq)
    values (old.id, old.owner, old.cluster, old.attempt, old.events + 1)
    on conflict (id) do nothing;
    return old;
end $$;
create trigger jobs_record_deleted after delete on jobs for each row execute function record_deleted_job();

------------------------------------------------------------------------------------------------------------------------
-- Events
------------------------------------------------------------------------------------------------------------------------

create table job_events (
    job_id          uuid        not null references jobs (id) on delete cascade,
    seq             bigint      not null check (seq >= 1),      -- contiguous for each job
    id              bigint      not null generated always as identity, -- rises over all jobs; a lower one may commit later
    at              timestamptz not null,                       -- when the service learned of it
    kind            text        not null,                       -- transition, status, events_truncated, orphan
    attempt         integer     not null,                       -- the newest attempt at that time; 0: none yet
    file            text,                                       -- of a status line: its file, relative to the results directory
    earlier_run     boolean     not null default false,         -- of a status line: an earlier run wrote it
    data            jsonb       not null,                       -- what happened, by kind
    position        bigint,                                     -- the place among the events of all jobs; null: not placed yet

    primary key (job_id, seq)
);
create unique index job_events_id on job_events (id);
create unique index job_events_position on job_events (position);
create index job_events_unplaced on job_events (id) where position is null;

-- Triggers record the transitions, so that no statement can omit one. The number is taken before the row is written. The
-- event is added after the statement: so status lines of the same statement come before the transition that they caused,
-- and the Slurm id of an attempt of the same statement can be read.
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

-- One order for the events of all jobs, for readers that follow more than one job.
--
-- `job_events.id` is not such an order: a lower id may become visible after a higher one, and a reader that continues from
-- the higher one never sees it. So `place_events` gives each event a position once the event is visible. Its callers take
-- turns: positions become visible in their own order, and a reader misses none below one that it has read. An open
-- transaction in another database does not disturb that, and neither does a restored dump.
create table event_order (
    only_row        boolean     primary key default true check (only_row),
    head            bigint      not null default 0              -- the highest position; it never falls
);
insert into event_order default values;

-- Places at most `most` events. Returns how many were placed, and the highest position. `id` and `seq` of one job rise
-- together, since the row of the job is locked from one event to the next. The lock timeout keeps two transactions from
-- waiting for each other: a deletion holds events that this function needs, and needs those that this function holds.
create function place_events(most integer, out head bigint, out placed integer)
language plpgsql set lock_timeout = '200ms' as $$
declare
    base  bigint;
    gone  integer;
begin
    placed := 0;
    if not exists (select from job_events e where e.position is null)
       and not exists (select from deleted_jobs d where d.position is null) then
        select o.head into head from event_order o;
        return;
    end if;
    select o.head into base from event_order o for update;
    update job_events e set position = n.position
    from (select f.id, base + row_number() over (order by f.id) as position
          from (select u.id from job_events u where u.position is null order by u.id limit most) f) n
    where e.id = n.id;
    get diagnostics placed = row_count;
    -- A row that was deleted in the meantime leaves a gap, which is never reused.
    select greatest(base, max(e.position)) into head from job_events e where e.position > base;
    update deleted_jobs d set position = n.position
    from (select f.id, place_events.head + row_number() over (order by f.deleted_at, f.id) as position
          from (select u.id, u.deleted_at from deleted_jobs u where u.position is null
                order by u.deleted_at, u.id limit most - placed) f) n
    where d.id = n.id;
    get diagnostics gone = row_count;
    select greatest(place_events.head, max(d.position)) into head from deleted_jobs d where d.position > place_events.head;
    update event_order o set head = place_events.head;
    placed := placed + gone;
end $$;

-- Notifies processes that wait for a job or its events to change. A trigger, so that no statement can omit it.
create function notify_job() returns trigger language plpgsql as $$
begin
    perform pg_notify('tao_slurm_jobs', coalesce(new.id, old.id)::text);
    return null;
end $$;

create trigger jobs_notify_added_or_deleted after insert or delete on jobs for each row execute function notify_job();
create trigger jobs_notify_changed after update on jobs for each row
    when ((old.version, old.events) is distinct from (new.version, new.events)) execute function notify_job();

------------------------------------------------------------------------------------------------------------------------
-- Clusters
------------------------------------------------------------------------------------------------------------------------

-- Every change of a cluster takes a number here, and so does every cluster that gets a name. No number is used twice.
create sequence cluster_revisions;

-- Clusters that were added through the API, in addition to those of the configuration file.
create table clusters (
    name            text        primary key check (name ~ '^[a-z0-9][a-z0-9_.-]{0,63}$'),
    settings        jsonb       not null,                       -- as received, by the keys of the configuration file; no SSH key, no path of one
    revision        bigint      not null default 0,             -- rises with every change; the ETag. Set by a trigger
    incarnation     bigint      not null default nextval('cluster_revisions'), -- which cluster the name means: work for an older one stops
    -- The identity, from the checked settings. A change of one of these makes it another cluster.
    login           text        not null,                       -- the user
    hosts           text[]      not null check (cardinality(hosts) > 0), -- the login hosts, each with its port
    base_dir        text        not null,                       -- where its files are
    created_at      timestamptz not null default now(),
    created_by      text        not null,                       -- the owner of the token
    changed_at      timestamptz not null default now(),
    changed_by      text        not null                        -- the owner of the token
);

-- Triggers, so that a change by hand counts as a change, too.
create function number_cluster_revision() returns trigger language plpgsql as $$
begin
    new.revision := nextval('cluster_revisions');
    return new;
end $$;
create trigger clusters_number_revision before insert or update on clusters
    for each row execute function number_cluster_revision();

create function notify_clusters() returns trigger language plpgsql as $$
begin
    perform pg_notify('tao_slurm_clusters', '');
    return null;
end $$;
create trigger clusters_notify_changed after insert or update or delete or truncate on clusters
    for each statement execute function notify_clusters();

-- One row for each cluster that was ever polled. The lease makes sure that one process at a time polls it.
create table cluster_polls (
    cluster         text        primary key,
    polled_at       timestamptz,                                -- the last poll that was answered properly
    interval_ms     bigint      not null default 5000,          -- the poll interval at that time
    failures        integer     not null default 0,             -- unanswered polls since
    error           text,                                       -- why the last poll was not answered
    auth_required   boolean     not null default false,         -- the cluster rejected all our keys in the last poll
    unreachable_ms  bigint      not null default 0,             -- how long the cluster has been unreachable, in total
    orphans         jsonb       not null default '[]',          -- domain::Orphan: jobs with our names that the service does not track
    due_at          timestamptz not null default now(),
    lease_token     uuid,
    lease_expires_at timestamptz,

    constraint lease_is_whole check ((lease_token is null) = (lease_expires_at is null))
);

-- What each cluster last reported about its partitions, so that no request waits for a cluster.
create table cluster_partitions (
    cluster         text        primary key,
    partitions      jsonb       not null default '[]',          -- slurm::PartitionInfo for each partition
    all_must_allow  boolean     not null default false,         -- EnforcePartLimits=ALL
    fetched_at      timestamptz,                                -- null: it has never answered
    interval_ms     bigint      not null default 300000,        -- the refresh interval: decides when an answer is stale
    due_at          timestamptz not null,                       -- the next refresh; the process that moves it does the refresh
    error           text,                                       -- why the last refresh failed
    error_at        timestamptz,                                -- when that was

    constraint error_is_whole check ((error is null) = (error_at is null))
);

------------------------------------------------------------------------------------------------------------------------
-- Images
------------------------------------------------------------------------------------------------------------------------

-- Registry images are converted into SquashFS files, once for all jobs that wait for them. One row for each place in a
-- cluster's image cache.
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

------------------------------------------------------------------------------------------------------------------------
-- Remote commands
------------------------------------------------------------------------------------------------------------------------

-- One row for each remote command and job that it was for. Losing some is allowed: no decision depends on them.
create table timeline (
    id              bigint      generated always as identity primary key,
    job_id          uuid        references jobs (id) on delete cascade, -- null: a poll, which is for all our jobs on the cluster
    cluster         text        not null,
    attempt         integer     check (attempt >= 1),           -- of the job, if the command was for one attempt
    class           text        not null,                       -- domain::CommandClass: which command
    host            text,                                       -- the login host that answered; null: none did
    started_at      timestamptz not null,
    duration_ms     bigint      not null check (duration_ms >= 0),
    result          text        not null,                       -- ok, or the class of the failure
    exit_code       integer,                                    -- of the remote program
    bytes           bigint      check (bytes >= 0),             -- the size of the answer
    jobs            integer     not null check (jobs >= 0),     -- how many jobs the command was for
    outcome         text                                        -- what the command meant for this job
);

create index timeline_of_job     on timeline (job_id, started_at, id) where job_id is not null;
create index timeline_of_cluster on timeline (cluster, started_at, id) where job_id is null;

------------------------------------------------------------------------------------------------------------------------
-- Callers
------------------------------------------------------------------------------------------------------------------------

-- Bearer tokens.
create table tokens (
    id              uuid        primary key,
    name            text        not null,                       -- a name for people
    owner           text        not null,                       -- owns the jobs that the token creates
    hash            bytea       not null unique,                -- SHA-256 of the token; the token itself is shown once
    scopes          text[]      not null,                       -- read, write, admin
    created_at      timestamptz not null,
    expires_at      timestamptz,                                -- null: never
    revoked_at      timestamptz,                                -- null: not revoked
    last_used_at    timestamptz                                 -- to the minute; null: never
);

-- The default webhook of a token: used for its jobs that name no webhook of their own. Each job copies it into `webhooks`.
create table token_webhooks (
    token_id        uuid        primary key references tokens (id) on delete cascade,
    url             bytea       not null,                       -- sealed (AEAD): many URLs contain a secret
    secret          bytea       not null                        -- sealed (AEAD); signs the messages
);

-- A request with an idempotency key is carried out once, however often it is sent.
create table idempotency_keys (
    owner           text        not null,                       -- the token's owner: each owner has their own keys
    key             text        not null,                       -- as sent in the header Idempotency-Key
    operation       text        not null,                       -- such as 'create_job', and the job that it is about
    request_hash    bytea       not null,                       -- HMAC of the body: a second request with this key has to be the same
    job_id          uuid        not null,                       -- the job in the response; it may have been deleted since
    status          smallint    not null,                       -- of the response
    created_at      timestamptz not null default now(),

    primary key (owner, key)
);

-- Expired keys are deleted.
create index idempotency_keys_age on idempotency_keys (created_at);

------------------------------------------------------------------------------------------------------------------------
-- Webhooks
------------------------------------------------------------------------------------------------------------------------

-- One row for each job that has a webhook. One process at a time delivers its messages, so that they keep their order.
create table webhooks (
    job_id          uuid        primary key references jobs (id) on delete cascade,
    owner           text        not null,                       -- of the job: limits the deliveries of one owner at a time
    url             bytea       not null,                       -- sealed (AEAD): many URLs contain a secret
    secret          bytea       not null,                       -- sealed (AEAD); signs the messages
    due_at          timestamptz,                                -- the next delivery; null: no message waits
    lease_token     uuid,
    lease_expires_at timestamptz,

    constraint lease_is_whole check ((lease_token is null) = (lease_expires_at is null))
);
create index webhooks_due on webhooks (due_at) where due_at is not null;
create index webhooks_leased on webhooks (owner) where lease_token is not null;

create table webhook_deliveries (
    job_id          uuid        not null references webhooks (job_id) on delete cascade,
    seq             bigint      not null,                       -- of the transition in job_events
    id              bigint      not null generated always as identity, -- the order of lists over all jobs
    state           text        not null default 'pending' check (state in ('pending', 'delivered', 'dead')),
    body            text        not null,                       -- the message; every attempt sends the same bytes
    attempts        integer     not null default 0 check (attempts >= 0), -- attempts to deliver it
    created_at      timestamptz not null default now(),
    tried_at        timestamptz,                                -- the last attempt
    delivered_at    timestamptz,                                -- the successful attempt
    response_status integer,                                    -- of the last attempt, if the receiver answered
    error           text,                                       -- why the last attempt failed

    primary key (job_id, seq),
    constraint delivered_has_time check ((state = 'delivered') = (delivered_at is not null))
);
create index webhook_deliveries_pending on webhook_deliveries (job_id, seq) where state = 'pending';
create index webhook_deliveries_dead on webhook_deliveries (id) where state = 'dead';

-- Adds the message about the newest transition of a job.
create function add_webhook_delivery(job jobs, previous text) returns void language plpgsql as $$
begin
    insert into webhook_deliveries (job_id, seq, body)
    values (job.id, job.events, jsonb_build_object(
        'type', 'job.status',
        'timestamp', to_char(job.last_modified at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'data', jsonb_build_object(
            'job_id', job.id, 'seq', job.events, 'name', job.name, 'labels', job.labels,
            'network_arch', job.network_arch, 'action', job.action, 'cluster', job.cluster,
            'status', job.status, 'previous_status', previous, 'phase', job.phase, 'message', left(job.message, 4000),
            'attempt', job.attempt,
            'slurm_job_id', (select a.slurm_job_id::text from slurm_metadata a
                             where a.job_id = job.id and a.attempt = job.attempt)))::text)
    on conflict do nothing;
    -- A webhook that waits after a failed delivery keeps waiting.
    update webhooks w set due_at = coalesce(w.due_at, now()) where w.job_id = job.id;
end $$;

create function add_first_webhook_delivery() returns trigger language plpgsql as $$
begin
    perform add_webhook_delivery(j, null) from jobs j where j.id = new.job_id;
    return null;
end $$;

create function add_next_webhook_delivery() returns trigger language plpgsql as $$
begin
    if exists (select from webhooks w where w.job_id = new.id) then
        perform add_webhook_delivery(new, old.status);
    end if;
    return null;
end $$;

-- Triggers, so that no statement can omit a message.
create trigger webhooks_add_first_delivery after insert on webhooks
    for each row execute function add_first_webhook_delivery();
create trigger jobs_webhook_delivery after update on jobs for each row
    when (old.status is distinct from new.status) execute function add_next_webhook_delivery();
