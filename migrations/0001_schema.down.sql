-- In the reverse order. A table takes its indexes and triggers with it.
drop table webhook_deliveries, webhooks;
drop table idempotency_keys, token_webhooks, tokens;
drop table timeline;
drop table image_waits, image_conversions;
drop table cluster_partitions, cluster_polls, clusters;
drop sequence cluster_revisions;
drop table event_order, job_events, deleted_jobs, slurm_metadata;
drop function add_webhook_delivery(jobs, text);
drop table jobs;
drop function add_next_webhook_delivery, add_first_webhook_delivery, notify_clusters, number_cluster_revision, notify_job,
    place_events, record_transition, number_transition, record_deleted_job;
