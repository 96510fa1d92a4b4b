-- Texts of some kilobytes are compressed by LZ4, in a tenth of the time: a batch script took longer to be stored than its job to
-- be accepted. A server that was built without it goes on as before. What is stored already stays as it is.
-- In the order in which everybody else locks the two.
do $$ begin
    execute 'alter table jobs alter column spec set compression lz4';
    execute 'alter table slurm_metadata alter column script set compression lz4';
exception
    -- Not built in; or a server before version 14, which does not know the words.
    when feature_not_supported or syntax_error then null;
end $$;
