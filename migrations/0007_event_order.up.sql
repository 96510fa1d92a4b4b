-- One order of the events of all jobs, for those who watch more than one.
--
-- `job_events.id` is no such order: a lower id may become visible after a higher one, and who reads on from the higher
-- one never sees it. So each event gets a position once it is visible, by `place_events`, whose callers take turns:
-- positions become visible in their own order, and whoever has read one has missed none below it. Neither a transaction
-- of another database that stays open nor a dump that is restored elsewhere disturbs that.

create table event_order (
    only_row        boolean     primary key default true check (only_row),
    head            bigint      not null default 0              -- the highest position; it never falls
);
insert into event_order default values;

alter table job_events add column position bigint;              -- null: not placed yet
create unique index job_events_position on job_events (position);
create index job_events_unplaced on job_events (id) where position is null;

-- That a job was deleted is the last event about it, and all that remains of them.
alter table deleted_jobs
    add column owner       text,                                -- null in rows that are older than these columns
    add column cluster     text,
    add column attempt     integer,
    add column seq         bigint,
    add column position    bigint;
create unique index deleted_jobs_position on deleted_jobs (position);
create index deleted_jobs_unplaced on deleted_jobs (deleted_at, id) where position is null and owner is not null;

create or replace function remember_deleted_job() returns trigger language plpgsql as $$
begin
    insert into deleted_jobs (id, owner, cluster, attempt, seq)
    values (old.id, old.owner, old.cluster, old.attempt, old.events + 1)
    on conflict (id) do nothing;
    return old;
end $$;

-- Gives positions to at most `most` events; says how many it were, and the highest position there is. Of one job, `id`
-- and `seq` rise together, since the row of the job is locked from one event to the next. It waits for nobody long: a
-- deletion under way holds events that it wants, and would in turn wait for those that it holds.
create function place_events(most integer, out head bigint, out placed integer)
language plpgsql set lock_timeout = '200ms' as $$
declare
    base  bigint;
    gone  integer;
begin
    placed := 0;
    if not exists (select from job_events e where e.position is null)
       and not exists (select from deleted_jobs d where d.position is null and d.owner is not null) then
        select o.head into head from event_order o;
        return;
    end if;
    select o.head into base from event_order o for update;
    update job_events e set position = n.position
    from (select f.id, base + row_number() over (order by f.id) as position
          from (select u.id from job_events u where u.position is null order by u.id limit most) f) n
    where e.id = n.id;
    get diagnostics placed = row_count;
    -- A row that was deleted meanwhile has left a gap: it is not used again.
    select greatest(base, max(e.position)) into head from job_events e where e.position > base;
    update deleted_jobs d set position = n.position
    from (select f.id, place_events.head + row_number() over (order by f.deleted_at, f.id) as position
          from (select u.id, u.deleted_at from deleted_jobs u where u.position is null and u.owner is not null
                order by u.deleted_at, u.id limit most - placed) f) n
    where d.id = n.id;
    get diagnostics gone = row_count;
    select greatest(place_events.head, max(d.position)) into head from deleted_jobs d where d.position > place_events.head;
    update event_order o set head = place_events.head;
    placed := placed + gone;
end $$;

-- Whoever waits for a job or its events to change hears of it; by a trigger, so that no statement can forget it.
create function tell_of_job() returns trigger language plpgsql as $$
begin
    perform pg_notify('tao_slurm_jobs', coalesce(new.id, old.id)::text);
    return null;
end $$;

create trigger jobs_tell_of_first after insert or delete on jobs for each row execute function tell_of_job();
create trigger jobs_tell_of_change after update on jobs for each row
    when ((old.version, old.events) is distinct from (new.version, new.events)) execute function tell_of_job();
