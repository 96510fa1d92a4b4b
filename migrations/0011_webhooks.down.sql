drop trigger jobs_tell_webhook on jobs;
drop table webhook_deliveries, webhooks;
drop function tell_webhook_of_change, tell_webhook_of_first, tell_webhook;
