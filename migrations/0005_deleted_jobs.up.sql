-- The ids of deleted jobs. On the cluster, marks, files and accounting of a deleted job go on to bear its id, and another
-- job of that id would be taken for it.
create table deleted_jobs (
    id              uuid        primary key,
    deleted_at      timestamptz not null default now()
);

create function remember_deleted_job() returns trigger language plpgsql as $$
begin
    insert into deleted_jobs (id) values (old.id) on conflict (id) do nothing;
    return old;
end $$;

-- By a trigger, so that no statement can forget it.
create trigger jobs_are_remembered after delete on jobs for each row execute function remember_deleted_job();

-- How often it was tried to remove what a deleted job has left on the cluster, and failed: it is not tried for ever.
alter table jobs add column purges_failed integer not null default 0;
