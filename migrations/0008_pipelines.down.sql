-- A job that waits would run without what it needs.
update jobs set phase = 'ended', status = 'Canceled', message = 'Canceled: this version of the service knows no needs.',
    finished_at = now(), due_at = null, secrets = null, last_modified = now(), version = version + 1, updated_by = 'migration 8'
where phase = 'waiting' or (phase = 'paused' and id in (select job_id from needs where not met));
drop trigger jobs_wake_needing on jobs;
drop trigger jobs_note_met_needs on jobs;
drop trigger jobs_keep_needed on jobs;
drop function wake_needing, note_met_needs, keep_needed;
drop table needs;
alter table jobs drop column skipped;
drop index jobs_pipeline;
drop table pipelines;
