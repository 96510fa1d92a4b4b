-- An attempt may queue the next one in Slurm. If that one is closed, its number is left out. Not for programs before this schema: they
-- would leave such attempts in Slurm.
alter table slurm_metadata add column ahead_closed boolean not null default false;
