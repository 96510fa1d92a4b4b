-- Whom a token's jobs tell of their status when they name nobody themselves. Taken over into `webhooks` with each job.
create table token_webhooks (
    token_id        uuid        primary key references tokens (id) on delete cascade,
    url             bytea       not null,                       -- sealed (AEAD): many a URL is a secret
    secret          bytea       not null                        -- sealed (AEAD)
);
