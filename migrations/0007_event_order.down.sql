drop trigger jobs_tell_of_change on jobs;
drop trigger jobs_tell_of_first on jobs;
drop function tell_of_job();
drop function place_events(integer);
create or replace function remember_deleted_job() returns trigger language plpgsql as $$
begin
    insert into deleted_jobs (id) values (old.id) on conflict (id) do nothing;
    return old;
end $$;
alter table deleted_jobs drop column owner, drop column cluster, drop column attempt, drop column seq, drop column position;
alter table job_events drop column position;
drop table event_order;
