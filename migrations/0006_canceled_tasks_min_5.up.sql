-- The tasks of an array that their owner has canceled, in Slurm's notation. Requests write it, and steps carry it out.
alter table jobs add column canceled_tasks text not null default '';
