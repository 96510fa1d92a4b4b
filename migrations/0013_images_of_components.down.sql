alter table slurm_metadata add column image text, add column image_note text;
-- The earlier program knows that of the job alone.
update slurm_metadata a
set (image, image_note) = (
    select launched.image, launched.note
    from jobs j, jsonb_to_recordset(a.images) as launched (requested text, image text, note text)
    where j.id = a.job_id and launched.requested = j.spec ->> 'image'
    limit 1
);
alter table slurm_metadata drop column images;
