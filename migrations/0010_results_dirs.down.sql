drop index jobs_results_dir;
