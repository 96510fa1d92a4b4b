drop trigger jobs_record_transition on jobs;
drop trigger jobs_number_transition on jobs;
drop trigger jobs_record_first on jobs;
drop trigger jobs_number_first on jobs;
drop function record_transition();
drop function number_transition();
drop table job_events;
alter table cluster_polls drop column unreachable_ms;
alter table slurm_metadata
    drop column status_files,
    add column status_path text,
    add column status_inode bigint,
    add column status_offset bigint,
    add constraint cursor_is_whole check ((status_path is null) = (status_inode is null) and (status_path is null) = (status_offset is null));
alter table jobs drop column kill_reason, drop column activity, drop column events;
