drop trigger slurm_metadata_submitted on slurm_metadata;
drop trigger slurm_metadata_inserted on slurm_metadata;
drop function note_unaccounted;
drop table unaccounted;
drop table allocations;
