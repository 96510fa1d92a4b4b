alter table image_conversions
    add column sent_at timestamptz,
    add column retake  boolean not null default false;
update image_conversions set sent_at = intended_at where sends > 0;
update image_conversions set retake = sends > 0 and submit_fence_cleared = sends;
alter table image_conversions drop column sends, drop column submit_fence_cleared, drop column submit_fence_shut_at;

alter table slurm_metadata
    add column sent_at timestamptz,
    add column retake  boolean not null default false;
update slurm_metadata set sent_at = intended_at where sends > 0;
update slurm_metadata set retake = sends > 0 and submit_fence_cleared = sends;
alter table slurm_metadata drop column sends, drop column submit_fence_cleared, drop column submit_fence_shut_at;
