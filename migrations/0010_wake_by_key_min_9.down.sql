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
