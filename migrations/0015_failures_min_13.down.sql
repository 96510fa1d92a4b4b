alter table runs drop column failure;
