alter table slurm_metadata add column image text, add column image_note text;
-- The earlier program knows that of the job alone.
update slurm_metadata a
set image = launched.image, image_note = launched.note
from jobs j, jsonb_to_recordset(a.images) as launched (requested text, image text, note text)
where j.id = a.job_id and launched.requested = j.spec ->> 'image';
alter table slurm_metadata drop column images;
