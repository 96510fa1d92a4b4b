drop table cluster_partitions;
