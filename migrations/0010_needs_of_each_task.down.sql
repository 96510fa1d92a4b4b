-- Older programs know no tasks that wait for tasks: such jobs are canceled, and wait for whole jobs if they are retried.
update jobs
set desired_state = case when desired_state in ('run', 'pause') then 'cancel' else desired_state end, due_at = now(), last_modified = now(),
    message = 'Canceling: this version of the service knows no tasks that wait for tasks.', version = version + 1, updated_by = 'migration 10'
where phase <> 'ended' and (array_state ->> 'held' <> '' or array_state ->> 'skipped' <> '');
update jobs
set array_state = array_state || jsonb_build_object('held', '', 'skipped', '', 'unsubmitted',
        concat_ws(',', nullif(array_state ->> 'unsubmitted', ''), nullif(array_state ->> 'held', ''), nullif(array_state ->> 'skipped', '')))
where array_state ->> 'held' <> '' or array_state ->> 'skipped' <> '';
update jobs set spec = jsonb_set(spec, '{needs}', replace((spec -> 'needs')::text, '"when": "each"', '"when": "succeeded"')::jsonb)
where id in (select job_id from needs) and (spec -> 'needs')::text like '%"when": "each"%';
drop trigger jobs_wake_needing on jobs;
create trigger jobs_wake_needing after update on jobs for each row
    when ((old.phase <> 'ended' and new.phase = 'ended') or (old.started_at is null and new.started_at is not null))
    execute function wake_needing();
create or replace function wake_needing() returns trigger language plpgsql as $$
declare
    woken text;
begin
    for woken in
        update jobs j set due_at = now(), version = j.version + 1, updated_by = 'wake_needing'
        from needs n
        where n.needed = new.id and j.id = n.job_id and j.phase = 'waiting'
        returning j.cluster
    loop
        perform pg_notify('tao_slurm_due', woken || ' submit');
    end loop;
    return null;
end $$;
