-- An attempt may queue the next one in Slurm. If that one is closed, its number is left out.
alter table slurm_metadata add column ahead_closed boolean not null default false;
