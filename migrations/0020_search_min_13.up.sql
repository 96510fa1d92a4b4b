-- Text searches of jobs: the name, and each label as "key:value", in lower case and on lines of their own.
create extension if not exists pg_trgm;

create function searched_text(name text, labels jsonb) returns text language sql immutable parallel safe as $$
    select lower(coalesce(name, '') || coalesce((select string_agg(E'\n' || l.key || ':' || l.value, '' order by l.key)
                                                 from jsonb_each_text(labels) l), ''))
$$;
alter table jobs add column searched text not null generated always as (searched_text(name, labels)) stored;
create index jobs_searched on jobs using gin (searched gin_trgm_ops);
