drop trigger slurm_metadata_unaccounted on slurm_metadata;
drop function note_unaccounted;
drop table unaccounted;
drop table allocations;
