-- What each cluster last said about its partitions, so that no request waits for a cluster.

create table cluster_partitions (
    cluster         text        primary key,
    partitions      jsonb       not null default '[]',          -- slurm::PartitionInfo, each
    all_must_allow  boolean     not null default false,         -- EnforcePartLimits=ALL
    fetched_at      timestamptz,                                -- null: it has never answered
    interval_ms     bigint      not null default 300000,        -- how often it is asked: tells how old is old
    due_at          timestamptz not null,                       -- when it is asked next; whoever moves it on asks
    error           text,                                       -- why the last question was not answered
    error_at        timestamptz,

    constraint error_is_whole check ((error is null) = (error_at is null))
);
