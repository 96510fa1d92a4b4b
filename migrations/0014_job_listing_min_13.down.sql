drop index slurm_metadata_rule;
create index jobs_owner_newest on jobs (owner, created_at desc, id desc);
drop index jobs_listing;
alter table jobs drop column partition;
