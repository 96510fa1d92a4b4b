-- A conversion of an image is a job of the service, which the jobs that want the file need. Not for programs before this schema: they
-- would convert images again in their own way.

-- What is known of each path in a cluster's image cache.
create table cached_images (
    cluster         text        not null,
    cache_path      text        not null,                       -- where the first file is made
    image           text        not null,                       -- the registry's reference
    file            text,                                       -- the newest complete file
    file_seen_at    timestamptz,                                -- when it was last found; null: a job could not use it since
    file_began_at   timestamptz,                                -- when its import began; null: the service found the file
    damaged_files   text[]      not null default '{}',          -- files that jobs could not unpack; no job gets one
    damaged_at      timestamptz,                                -- when a job last found one
    error           text,                                       -- why the last conversion failed
    failures        integer     not null default 0,             -- consecutive failed conversions
    retry_at        timestamptz,                                -- no retry before this time
    conversion      uuid        references jobs (id) on delete set null, -- the newest one, until its result is known
    target          text,                                       -- the file that it makes
    version         bigint      not null default 1,             -- rises with every change
    updated_by      text        not null default 'insert',      -- the statement that wrote the row last

    primary key (cluster, cache_path),
    constraint conversion_has_target check (conversion is null or target is not null)
);
create index cached_images_conversion on cached_images (conversion) where conversion is not null;
insert into cached_images (cluster, cache_path, image, file, file_seen_at, file_began_at, damaged_files, damaged_at, error, failures, retry_at)
select cluster, cache_path, image, file, file_seen_at, file_began_at, damaged_files, damaged_at, error, failures, retry_at from image_conversions;
drop table image_waits, image_conversions;
-- Those that wait look again.
update jobs set due_at = now() where phase = 'converting_image';

-- Place -1 is the conversion of the job's own image: the service stores it when the job begins to wait, and no specification names it.
alter table needs drop constraint needs_place_check;
alter table needs add constraint needs_place_check check (place >= -1);

-- As in migration 10, with the jobs that wait for their images.
create or replace function wake_needing() returns trigger language plpgsql as $$
declare
    turns boolean := (old.phase = 'ended') <> (new.phase = 'ended') or (old.started_at is null and new.started_at is not null);
    waiting uuid;
    woken text;
begin
    for waiting in select distinct n.job_id from needs n where n.needed = new.id order by 1
    loop
        update jobs set due_at = now(), version = version + 1, updated_by = 'wake_needing'
        where id = waiting and phase <> 'ended'
          and (turns and phase in ('waiting', 'converting_image') or array_state ->> 'held' <> '' or array_state ->> 'skipped' <> '')
        returning cluster || case when phase in ('waiting', 'converting_image') then ' submit' else '' end into woken;
        if found then
            perform pg_notify('tao_slurm_due', woken);
        end if;
    end loop;
    return null;
end $$;

-- A conversion is canceled when the last job leaves that waited for it.
create function leave_conversion() returns trigger language plpgsql as $$
declare
    left_alone uuid;
    woken text;
begin
    select needed into left_alone from needs where job_id = new.id and place = -1;
    -- Of two jobs that leave together, the second one looks after the first one has left.
    perform from jobs where id = left_alone for no key update;
    delete from needs where job_id = new.id and place = -1;
    update jobs c
    set desired_state = 'cancel', status = 'Canceling', message = 'Canceling: no job needs the image any more.', due_at = now(),
        last_modified = new.last_modified, version = version + 1, updated_by = 'leave_conversion'
    where c.id = left_alone and c.phase <> 'ended' and c.desired_state in ('run', 'pause')
      and not exists (select from needs n join jobs w on w.id = n.job_id
                      where n.needed = c.id and n.place = -1 and w.phase = 'converting_image')
    returning cluster into woken;
    if found then
        perform pg_notify('tao_slurm_due', woken);
    end if;
    return null;
end $$;
create trigger jobs_leave_conversion after update on jobs for each row
    when (old.phase = 'converting_image' and new.phase <> 'converting_image') execute function leave_conversion();
