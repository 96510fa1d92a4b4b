-- Jobs that wait for other jobs: one row for each need. Not for programs before this schema: they would run a resumed job without a
-- look at what it needs.
create table needs (
    job_id          uuid        not null references jobs (id) on delete cascade, -- the job that waits
    place           integer     not null check (place >= 0),    -- in the needs of its specification, which say what it waits for
    needed          uuid        references jobs (id) on delete set null, -- null: it was deleted, after the other job had ended
    met             boolean     not null default false,         -- the job went on: it does not wait again when it is retried

    primary key (job_id, place)
);
alter table jobs add column skipped boolean not null default false; -- canceled because of a job that it needs
-- The wake-up of those that need a job looks at no other jobs.
create index needs_needed on needs (needed);

-- A job that begins or ends wakes those that wait for it. A trigger, so that no statement can omit it. The version makes a look that
-- has already begun look again.
create function wake_needing() returns trigger language plpgsql as $$
declare
    woken text;
begin
    for woken in
        update jobs j set due_at = now(), version = j.version + 1, updated_by = 'wake_needing'
        from needs n
        where n.needed = new.id and j.id = n.job_id and j.phase = 'waiting'
        returning j.cluster
    loop
        -- As listen::due writes it. Equal notifications of a transaction are sent once.
        perform pg_notify('tao_slurm_due', woken || ' submit');
    end loop;
    return null;
end $$;
create trigger jobs_wake_needing after update on jobs for each row
    when ((old.phase <> 'ended' and new.phase = 'ended') or (old.started_at is null and new.started_at is not null))
    execute function wake_needing();

create function note_met_needs() returns trigger language plpgsql as $$
begin
    update needs set met = true where job_id = new.id;
    return null;
end $$;
create trigger jobs_note_met_needs after update on jobs for each row
    when (old.phase = 'waiting' and new.phase = 'queued') execute function note_met_needs();

-- The statements that delete jobs look for this first; here a job that was added meanwhile is seen, too.
create function keep_needed() returns trigger language plpgsql as $$
begin
    -- Those whose files are removed first were asked for when no job needed them.
    if old.desired_state <> 'delete' and exists (select from needs n join jobs j on j.id = n.job_id where n.needed = old.id and j.phase <> 'ended') then
        raise exception 'job % is needed', old.id using errcode = 'restrict_violation';
    end if;
    return old;
end $$;
create trigger jobs_keep_needed before delete on jobs for each row execute function keep_needed();

-- Jobs that were stored together. Their specifications name the pipeline.
create table pipelines (
    id              uuid        primary key,
    owner           text        not null,                       -- of its jobs, too
    name            text,                                       -- a name for people
    labels          jsonb       not null default '{}',          -- its jobs have them, too
    request_hash    bytea       not null,                       -- HMAC of the request: a second request with this id has to be the same
    created_at      timestamptz not null
);
create index pipelines_newest on pipelines (created_at desc, id desc);
create index pipelines_owner_newest on pipelines (owner, created_at desc, id desc);
create index jobs_pipeline on jobs using hash ((spec #>> '{pipeline,id}'));
