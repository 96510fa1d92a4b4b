-- Slurm's MaxArraySize, as the cluster last reported it.
alter table cluster_partitions add column max_array_size int;
