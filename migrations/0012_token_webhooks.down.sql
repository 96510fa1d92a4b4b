drop table token_webhooks;
