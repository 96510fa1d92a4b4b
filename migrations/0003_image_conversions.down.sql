alter table slurm_metadata drop column image, drop column image_note;
drop table image_waits;
drop table image_conversions;
