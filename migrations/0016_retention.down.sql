drop index jobs_finished;
