//! Where the files of a job's attempts lie: the newest attempt comes with the job, this finds the others.

use domain::{AttemptNo, AttemptPlace, JobId};
use slurm::SlurmJobId;

use crate::{error::StoreError, store::Store};

impl Store {
    /// None when the job has no such attempt.
    pub async fn find_attempt_place(
        &self,
        job: JobId,
        no: AttemptNo,
    ) -> Result<Option<AttemptPlace>, StoreError> {
        // No row can have a number that its column cannot hold.
        let Ok(number) = i32::try_from(no.get()) else { return Ok(None) };
        let row = sqlx::query!(
            "-- attempt_place::find
             select token, job_dir, slurm_job_id from slurm_metadata where job_id = $1 and attempt = $2",
            job.get(),
            number,
        )
        .fetch_optional(&self.pool)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let corrupt =
            |column| StoreError::Corrupt { table: "slurm_metadata", column, row: format!("{job}/{no}") };
        let slurm_id = |id: i64| u32::try_from(id).ok().and_then(SlurmJobId::new);
        Ok(Some(AttemptPlace {
            no,
            token: row.token.parse().map_err(|_| corrupt("token"))?,
            job_dir: row.job_dir.parse().map_err(|_| corrupt("job_dir"))?,
            slurm_id: row
                .slurm_job_id
                .map(|id| slurm_id(id).ok_or_else(|| corrupt("slurm_job_id")))
                .transpose()?,
        }))
    }
}
