alter table jobs drop column canceled_tasks;
