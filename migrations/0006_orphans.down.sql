alter table cluster_polls drop column orphans, drop column auth_required;
delete from job_events where kind = 'orphan';
