-- Each time that a Slurm job of ours held nodes, as Slurm accounts for it. It stays when its job is deleted, so it repeats what sums need.
create table allocations (
    cluster         text        not null,
    slurm_job_id    bigint      not null,                       -- of a task of an array its own
    started_at      timestamptz not null,                       -- Slurm may give an id again
    elapsed         bigint      not null check (elapsed > 0),   -- seconds, without the time in which it was suspended
    job_id          uuid        not null,
    attempt         integer     not null,
    owner           text        not null,
    labels          jsonb       not null,
    partition       text        not null,
    state           text        not null,                       -- Slurm's own word
    gpus            integer     not null,
    cpus            integer     not null,
    nodes           integer     not null,

    primary key (cluster, slurm_job_id, started_at)
);
create index allocations_owner on allocations (owner, started_at);
create index allocations_job on allocations (job_id);

-- Slurm jobs of ours whose allocations are not all known yet.
create table unaccounted (
    cluster         text        not null,
    slurm_job_id    bigint      not null,
    token           text        not null,                       -- the name of the Slurm job
    job_id          uuid        not null,
    attempt         integer     not null,
    owner           text        not null,
    labels          jsonb       not null,
    ask_at          timestamptz not null default now(),         -- not before its attempt is concluded
    asked_since     timestamptz,                                -- null: not asked yet
    found           boolean     not null default false,         -- accounting knew the end of all its runs

    primary key (token, slurm_job_id)                           -- an attempt may have had two Slurm jobs
);
create index unaccounted_due on unaccounted (cluster, ask_at);

create function note_unaccounted() returns trigger language plpgsql as $$
begin
    insert into unaccounted (cluster, slurm_job_id, token, job_id, attempt, owner, labels)
    select j.cluster, new.slurm_job_id, new.token, j.id, new.attempt, j.owner, j.labels
    from jobs j where j.id = new.job_id
    on conflict (token, slurm_job_id) do nothing;
    return null;
end $$;
create trigger slurm_metadata_inserted after insert on slurm_metadata for each row
    when (new.slurm_job_id is not null)
    execute function note_unaccounted();
create trigger slurm_metadata_submitted after update on slurm_metadata for each row
    when (new.slurm_job_id is distinct from old.slurm_job_id and new.slurm_job_id is not null)
    execute function note_unaccounted();

-- Attempts that this change meets in Slurm. What ended earlier is not counted.
insert into unaccounted (cluster, slurm_job_id, token, job_id, attempt, owner, labels)
select j.cluster, a.slurm_job_id, a.token, j.id, a.attempt, j.owner, j.labels
from slurm_metadata a join jobs j on j.id = a.job_id
where a.slurm_job_id is not null and a.concluded_at is null and j.phase <> 'ended';
