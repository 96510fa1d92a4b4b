-- Keys under which callers send what is to be done once, however often they send it.
create table idempotency_keys (
    owner           text        not null,                       -- of the token: callers do not meet in each other's keys
    key             text        not null,
    operation       text        not null,                       -- such as 'create_job', and the job that it is about
    request_hash    bytea       not null,                       -- of the body, keyed (HMAC): the same key again must be the same request
    job_id          uuid        not null,                       -- what the answer was about; the job may be deleted by now
    status          smallint    not null,                       -- of the answer
    created_at      timestamptz not null default now(),

    primary key (owner, key)
);

-- The old ones are swept.
create index idempotency_keys_age on idempotency_keys (created_at);

alter table tokens add column last_used_at timestamptz;         -- to the minute
