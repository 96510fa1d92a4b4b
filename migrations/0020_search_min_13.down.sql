-- The extension stays: others may use it.
drop index jobs_searched;
alter table jobs drop column searched;
drop function searched_text(text, jsonb);
