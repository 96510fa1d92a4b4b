alter table tokens drop column last_used_at;
drop table idempotency_keys;
