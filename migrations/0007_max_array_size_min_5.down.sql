alter table cluster_partitions drop column max_array_size;
