alter table jobs drop column purges_failed;
drop trigger jobs_are_remembered on jobs;
drop function remember_deleted_job;
drop table deleted_jobs;
