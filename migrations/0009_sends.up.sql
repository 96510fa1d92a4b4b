-- The sends of an attempt are numbered, and a send that is held up on its way finds a later number on the cluster. That takes
-- the place of "the claim may be taken over".

alter table slurm_metadata
    add column submit_fence  integer not null default 0,        -- the number of the newest send; 0 before the first
    add column submit_fence_cleared integer not null default 0,        -- those up to this number are over and had no effect
    add column submit_fence_shut_at timestamptz;                       -- when a look first saw to it that none of them begins any more
update slurm_metadata
set submit_fence = case when sent_at is null then 0 else 1 end, submit_fence_cleared = case when sent_at is not null and retake then 1 else 0 end;
alter table slurm_metadata drop column sent_at, drop column retake;

alter table image_conversions
    add column submit_fence  integer not null default 0,
    add column submit_fence_cleared integer not null default 0,
    add column submit_fence_shut_at timestamptz;
update image_conversions
set submit_fence = case when sent_at is null then 0 else 1 end, submit_fence_cleared = case when sent_at is not null and retake then 1 else 0 end;
alter table image_conversions drop column sent_at, drop column retake;
