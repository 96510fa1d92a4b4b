-- Each job that waits is found by its key. As one statement, the database chose its plan by its statistics, and might scan all jobs.
create or replace function wake_needing() returns trigger language plpgsql as $$
declare
    waiting uuid;
    woken text;
begin
    -- In one order, so that two jobs that end together do not wait for each other.
    for waiting in select distinct n.job_id from needs n where n.needed = new.id order by 1
    loop
        update jobs set due_at = now(), version = version + 1, updated_by = 'wake_needing'
        where id = waiting and phase = 'waiting'
        returning cluster into woken;
        if found then
            -- As listen::due writes it. Equal notifications of a transaction are sent once.
            perform pg_notify('tao_slurm_due', woken || ' submit');
        end if;
    end loop;
    return null;
end $$;
