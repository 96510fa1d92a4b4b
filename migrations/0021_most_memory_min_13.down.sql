alter table allocations drop column most_memory;
