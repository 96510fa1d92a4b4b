//! Rows to images, and changed images to documents for the statements.

use domain::{CachedImage, Conversion, DesiredState, JobId, Timestamp};
use serde_json::{Value, json};
use slurm::RemotePath;
use uuid::Uuid;

use crate::{
    error::{Result, StoreError},
    values::StoredRow,
};

/// An image as it is stored, with the job that converts it.
#[derive(Debug)]
pub(super) struct ImageRow {
    pub(super) cluster: String,
    pub(super) cache_path: String,
    pub(super) image: String,
    pub(super) file: Option<String>,
    pub(super) file_seen_at: Option<Timestamp>,
    pub(super) file_began_at: Option<Timestamp>,
    pub(super) damaged_files: Vec<String>,
    pub(super) damaged_at: Option<Timestamp>,
    pub(super) error: Option<String>,
    pub(super) failures: i32,
    pub(super) retry_at: Option<Timestamp>,
    pub(super) target: Option<String>,
    pub(super) version: i64,
    pub(super) conversion: Option<Uuid>,
    pub(super) status: Option<String>,
    pub(super) phase: Option<String>,
    pub(super) submitted_at: Option<Timestamp>,
    pub(super) message: Option<String>,
    pub(super) desired_state: Option<String>,
    pub(super) created_at: Option<Timestamp>,
    pub(super) started_at: Option<Timestamp>,
    pub(super) finished_at: Option<Timestamp>,
    pub(super) reads_damaged: bool,
}

impl TryFrom<ImageRow> for CachedImage {
    type Error = StoreError;

    fn try_from(row: ImageRow) -> Result<Self> {
        let stored = StoredRow::of("cached_images", &row.cache_path);
        let conversion =
            match (row.conversion, row.target, row.status, row.message, row.desired_state, row.created_at) {
                (Some(job), Some(target), Some(status), Some(message), Some(desired), Some(created_at)) => {
                    Some(Conversion {
                        job: JobId::new(job),
                        target: stored.parse("target", &target)?,
                        status: stored.parse("status", &status)?,
                        phase: stored.parse("phase", row.phase.as_deref().unwrap_or_default())?,
                        message,
                        is_unneeded: stored.parse::<DesiredState>("desired_state", &desired)?
                            != DesiredState::Run,
                        created_at,
                        submitted_at: row.submitted_at,
                        started_at: row.started_at,
                        finished_at: row.finished_at,
                    })
                }
                _ => None,
            };
        let damaged = row.damaged_files.iter().map(|file| stored.parse("damaged_files", file));
        Ok(Self {
            cluster: stored.parse("cluster", &row.cluster)?,
            cache_path: stored.parse("cache_path", &row.cache_path)?,
            image: stored.parse("image", &row.image)?,
            file: stored.parse_any("file", row.file.as_ref())?,
            file_seen_at: row.file_seen_at,
            file_began_at: row.file_began_at,
            damaged_files: damaged.collect::<Result<_>>()?,
            damaged_at: row.damaged_at,
            reads_damaged: row.reads_damaged,
            error: row.error,
            failures: stored.number("failures", row.failures)?,
            retry_at: row.retry_at,
            conversion,
            version: row.version,
        })
    }
}

/// The images that can be read: one bad row does not hold up the others.
pub(super) fn readable(rows: Vec<ImageRow>) -> Vec<CachedImage> {
    let read = |row: ImageRow| {
        let path = row.cache_path.clone();
        CachedImage::try_from(row)
            .inspect_err(
                |error| tracing::error!(path, error = %error, "what is stored of an image cannot be read"),
            )
            .ok()
    };
    rows.into_iter().filter_map(read).collect()
}

/// The columns that may change, as `jsonb_populate_recordset` reads them.
pub(super) fn document(image: &CachedImage) -> Value {
    let conversion = image.conversion.as_ref();
    json!({
        "cache_path": image.cache_path.as_str(),
        "version": image.version,
        "file": image.file.as_ref().map(RemotePath::as_str),
        "file_seen_at": image.file_seen_at,
        "file_began_at": image.file_began_at,
        "damaged_files": image.damaged_files,
        "damaged_at": image.damaged_at,
        "error": image.error,
        "failures": image.failures,
        "retry_at": image.retry_at,
        "conversion": conversion.map(|conversion| conversion.job),
        "target": conversion.map(|conversion| conversion.target.as_str()),
    })
}
