-- The most memory of one of its tasks that Slurm has seen, in MiB; null: not known.
alter table allocations add column most_memory integer;
