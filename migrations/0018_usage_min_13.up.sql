-- What a run uses, as its batch script measures it: domain::Usage; null: nothing is known.
alter table runs add column usage jsonb;
-- The CPU seconds that Slurm accounts for; null: not known.
alter table allocations add column cpu_seconds bigint;
