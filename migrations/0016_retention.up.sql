-- Which jobs ended first: those that are forgotten after some time (database.keep_ended_jobs), a few at a time.
create index jobs_finished on jobs (finished_at) where finished_at is not null;
