-- What was found for the results of a task: domain::TaskResult for each, as JSON; null: its run was not concluded, or its job has no
-- results. A text, because jsonb refuses NUL and writes out large exponents.
alter table runs add column results text;
