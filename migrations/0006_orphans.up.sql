-- Jobs on a cluster with names of ours that nothing watches, as the last poll found them.
alter table cluster_polls
    add column orphans       jsonb   not null default '[]',    -- domain::Orphan, each
    add column auth_required boolean not null default false;   -- the last poll failed because no key of ours is accepted
