-- How long the task ran in the attempts before this one since its owner last retried it, in seconds; null is none. Not for programs before
-- this schema: they would end a job whose policy says that it goes on.
alter table runs add column ran_before int;
