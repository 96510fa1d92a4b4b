-- Lists count and filter by the rule of the failure that they show. Of an array, that is the failure of its first task that failed.
alter table jobs add column rule text;                          -- the rule of its failure; null unless the status is Error

create index runs_failed on runs (job_id, task) where outcome = 'error' and not superseded and failure is not null;

-- Of a job whose status is Error.
create function failure_rule(job uuid, newest integer, is_array boolean) returns text language sql stable as $$
    select case when is_array
                then (select r.failure ->> 'rule' from runs r
                      where r.job_id = job and r.outcome = 'error' and not r.superseded and r.failure is not null
                      order by r.task limit 1)
                else (select r.failure ->> 'rule' from runs r where r.job_id = job and r.attempt = newest and r.task = 0) end
$$;

-- A trigger, so that no statement can omit it, nor an older program. After the statement, because it may write the failure, too.
create function note_rule() returns trigger language plpgsql as $$
declare
    found_rule text := case when new.status = 'Error' then failure_rule(new.id, new.attempt, new.array_state is not null) end;
begin
    if found_rule is distinct from new.rule then
        update jobs set rule = found_rule where id = new.id;
    end if;
    return null;
end $$;
create trigger jobs_note_rule after update on jobs for each row
    when ((old.status = 'Error') <> (new.status = 'Error')) execute function note_rule();

update jobs set rule = failure_rule(id, attempt, array_state is not null) where status = 'Error';

-- Counts by status, cluster, owner, partition and rule read this index alone.
drop index jobs_listing;
create index jobs_listing on jobs (owner, created_at desc, id desc) include (status, cluster, partition, rule)
    where desired_state <> 'delete';
drop index slurm_metadata_rule;
