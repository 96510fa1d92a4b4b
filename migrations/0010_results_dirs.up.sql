-- TAO's own services ask for a job by the directory that its specification names for its results.

-- By hash, because a directory may be of any length.
create index jobs_results_dir on jobs using hash ((spec #>> '{work,specs,results_dir}'));
