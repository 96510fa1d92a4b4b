-- How long the task ran before this execution, in seconds: in earlier attempts since its owner last retried it, and before Slurm requeued
-- this one. Null is none: programs of schema version 8 do not count it.
alter table runs add column ran_before int;
