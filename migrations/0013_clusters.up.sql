-- Clusters that are kept here, beside those of the configuration file.

-- Every change of a cluster, and every cluster that a name comes to mean, takes its number here; none is used twice.
create sequence cluster_revisions;

create table clusters (
    name            text        primary key check (name ~ '^[a-z0-9][a-z0-9_.-]{0,63}$'),
    settings        jsonb       not null,                       -- as they were sent, by the names of the file's keys; no key, no path of one
    revision        bigint      not null default 0,             -- rises with every change: the ETag. Set by a trigger
    -- Which cluster the name means. Another one has another number, and whoever still knows the old number does nothing to it.
    incarnation     bigint      not null default nextval('cluster_revisions'),
    -- What it is known by, as the settings came to when they were checked: a cluster with other ones is another cluster.
    login           text        not null,                       -- the user
    hosts           text[]      not null check (cardinality(hosts) > 0),  -- each with its port
    base_dir        text        not null,
    created_at      timestamptz not null default now(),
    created_by      text        not null,                       -- the owner of the token
    changed_at      timestamptz not null default now(),
    changed_by      text        not null
);

-- By triggers, so that a change by hand is a change, too.
create function number_cluster() returns trigger language plpgsql as $$
begin
    new.revision := nextval('cluster_revisions');
    return new;
end $$;
create trigger clusters_number before insert or update on clusters for each row execute function number_cluster();

create function tell_of_clusters() returns trigger language plpgsql as $$
begin
    perform pg_notify('tao_slurm_clusters', '');
    return null;
end $$;
create trigger clusters_tell after insert or update or delete or truncate on clusters
    for each statement execute function tell_of_clusters();
