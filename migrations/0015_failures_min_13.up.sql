-- Why a run failed: domain::Failure; null: it was not concluded, or did not fail.
alter table runs add column failure jsonb;
