do $$ begin
    execute 'alter table jobs alter column spec set compression default';
    execute 'alter table slurm_metadata alter column script set compression default';
exception
    when syntax_error then null;
end $$;
