-- Each component may have an image of its own, so an attempt may have several. Not for programs before this schema: they would start
-- such attempts with the images of the registry, and store none.
alter table slurm_metadata add column images jsonb not null default '[]';
update slurm_metadata a
set images = jsonb_build_array(jsonb_build_object('requested', j.spec ->> 'image', 'image', a.image, 'note', a.image_note))
from jobs j
where j.id = a.job_id and a.image is not null and j.spec ->> 'image' is not null;
alter table slurm_metadata drop column image, drop column image_note;
