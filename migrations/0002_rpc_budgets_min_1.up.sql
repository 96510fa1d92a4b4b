-- What is left of the RPC budget of each cluster that has one. One row for all processes, because Slurm counts by user.
create table rpc_budgets (
    cluster         text        primary key,
    tokens          bigint      not null,                       -- domain::RpcTokens; negative after more requests than were left
    refilled_at     timestamptz not null,                       -- when the last token was added
    spent           bigint      not null default 0              -- all requests so far
);
