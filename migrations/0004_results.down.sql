alter table runs drop column results;
