//! How far any program has come, from a file that it writes.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};
use slurm::RemotePath;
use utoipa::ToSchema;

use crate::{request::results::results_file, violation::Faults};

const MOST: u64 = 1_000_000_000_000;

/// A file in which the program writes how far it has come.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgressRequest {
    /// A path in the job's results directory, such as `progress`. Its first 400 bytes are read while the job runs: a number, or a JSON
    /// object with `percent`, or with `done` and `total`.
    pub file: String,
    /// The number that the program reaches. Default: 100, so that the number in the file is the percent.
    #[schema(minimum = 1, maximum = 1_000_000_000_000_u64)]
    pub total: Option<u64>,
}

/// A validated progress file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressFile {
    /// Below the results directory of the task.
    pub path: String,
    pub total: NonZeroU64,
}

impl ProgressFile {
    /// `home`: the results directory of the job, if its caller has chosen its id.
    pub(super) fn from_request(
        asked: &ProgressRequest,
        home: Option<&RemotePath>,
        faults: &mut Faults,
    ) -> Option<Self> {
        let path = results_file(&asked.file, home);
        if path.is_none() {
            let detail = "must be a file in the job's results directory: a relative path such as progress";
            faults.add("/progress/file", "invalid", detail);
        }
        let total = asked.total.unwrap_or(100);
        if !(1..=MOST).contains(&total) {
            faults.add("/progress/total", "out_of_range", format_args!("must be from 1 to {MOST}"));
        }
        Some(Self { path: path?, total: NonZeroU64::new(total)? })
    }
}
