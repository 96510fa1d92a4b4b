-- Tasks that wait for tasks of other jobs. Not for programs before this schema: they would submit such tasks at once.

-- A job with tasks that end, or go again, wakes the jobs with tasks that wait for its tasks, too, in any phase.
create or replace function wake_needing() returns trigger language plpgsql as $$
declare
    -- One that goes again makes a look that has already begun look again.
    turns boolean := (old.phase = 'ended') <> (new.phase = 'ended') or (old.started_at is null and new.started_at is not null);
    waiting uuid;
    woken text;
begin
    -- Each job that waits is found by its key. As one statement, the database chose its plan by its statistics, and might scan all jobs.
    -- In one order, so that two jobs that end together do not wait for each other.
    for waiting in select distinct n.job_id from needs n where n.needed = new.id order by 1
    loop
        update jobs set due_at = now(), version = version + 1, updated_by = 'wake_needing'
        where id = waiting and phase <> 'ended'
          and (turns and phase = 'waiting' or array_state ->> 'held' <> '' or array_state ->> 'skipped' <> '')
        -- As listen::due writes it. Without a lane, all are woken. Equal notifications of a transaction are sent once.
        returning cluster || case phase when 'waiting' then ' submit' else '' end into woken;
        if found then
            perform pg_notify('tao_slurm_due', woken);
        end if;
    end loop;
    return null;
end $$;
drop trigger jobs_wake_needing on jobs;
create trigger jobs_wake_needing after update on jobs for each row
    when ((old.phase = 'ended') <> (new.phase = 'ended') or (old.started_at is null and new.started_at is not null)
          or (old.array_state -> 'counts') - '{pending,running}'::text[]
             is distinct from (new.array_state -> 'counts') - '{pending,running}'::text[])
    execute function wake_needing();
