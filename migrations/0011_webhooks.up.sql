-- Who is told of a job's status, and what they were told.

-- One row a job that has a webhook; with it the right to deliver, by lease, so that its deliveries keep their order.
create table webhooks (
    job_id          uuid        primary key references jobs (id) on delete cascade,
    owner           text        not null,                       -- of the job: no owner takes all the turns
    url             bytea       not null,                       -- sealed (AEAD): many a URL is a secret
    secret          bytea       not null,                       -- sealed (AEAD)
    due_at          timestamptz,                                -- when to deliver next; null: nothing waits
    lease_token     uuid,
    lease_expires_at timestamptz,

    constraint lease_is_whole check ((lease_token is null) = (lease_expires_at is null))
);
create index webhooks_due on webhooks (due_at) where due_at is not null;
create index webhooks_leased on webhooks (owner) where lease_token is not null;

create table webhook_deliveries (
    job_id          uuid        not null references webhooks (job_id) on delete cascade,
    seq             bigint      not null,                       -- of the transition in job_events
    id              bigint      not null generated always as identity,  -- the order of lists over all jobs
    state           text        not null default 'pending' check (state in ('pending', 'delivered', 'dead')),
    body            text        not null,                       -- as it is sent, the same each time
    attempts        integer     not null default 0 check (attempts >= 0),
    created_at      timestamptz not null default now(),
    tried_at        timestamptz,
    delivered_at    timestamptz,
    response_status integer,                                    -- of the last attempt, if it was answered
    error           text,                                       -- why the last attempt failed

    primary key (job_id, seq),
    constraint delivered_has_time check ((state = 'delivered') = (delivered_at is not null))
);
create index webhook_deliveries_pending on webhook_deliveries (job_id, seq) where state = 'pending';
create index webhook_deliveries_dead on webhook_deliveries (id) where state = 'dead';

-- A message for the transition that the job's row has just gone through.
create function tell_webhook(job jobs, previous text) returns void language plpgsql as $$
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
    -- One that waits for its turn after a failure goes on waiting.
    update webhooks w set due_at = coalesce(w.due_at, now()) where w.job_id = job.id;
end $$;

create function tell_webhook_of_first() returns trigger language plpgsql as $$
begin
    perform tell_webhook(j, null) from jobs j where j.id = new.job_id;
    return null;
end $$;

create function tell_webhook_of_change() returns trigger language plpgsql as $$
begin
    if exists (select from webhooks w where w.job_id = new.id) then
        perform tell_webhook(new, old.status);
    end if;
    return null;
end $$;

-- By triggers, so that no statement can forget it.
create trigger webhooks_tell_first after insert on webhooks for each row execute function tell_webhook_of_first();
create trigger jobs_tell_webhook after update on jobs for each row
    when (old.status is distinct from new.status) execute function tell_webhook_of_change();
