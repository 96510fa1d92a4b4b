drop index runs_started;
