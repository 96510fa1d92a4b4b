drop table clusters;
drop function tell_of_clusters();
drop function number_cluster();
drop sequence cluster_revisions;
