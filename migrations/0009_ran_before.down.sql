alter table runs drop column ran_before;
