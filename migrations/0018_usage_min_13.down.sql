alter table allocations drop column cpu_seconds;
alter table runs drop column usage;
