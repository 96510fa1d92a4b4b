//! Reads the results of what has ended: a job, or a task of an array.

use domain::{ResultPlaces, ResultRule, TaskResult, read_results};
use remote::PartFound;
use tokio::task::spawn_blocking;

/// The results in more bytes are read apart from the other work.
const READ_AT_ONCE: usize = 32 * 1024;

/// The results in what was found.
pub(super) async fn read(
    rules: &[ResultRule],
    places: ResultPlaces,
    parts: &[PartFound],
) -> Option<Vec<TaskResult>> {
    let bytes: usize = parts.iter().map(size).sum();
    if bytes <= READ_AT_ONCE {
        return Some(read_results(rules, &places, parts));
    }
    // A search in a MiB may take seconds.
    let (rules, parts) = (rules.to_vec(), parts.to_vec());
    spawn_blocking(move || read_results(&rules, &places, &parts)).await.ok()
}

fn size(part: &PartFound) -> usize {
    match part {
        PartFound::Bytes(bytes) => bytes.len(),
        PartFound::Missing | PartFound::Odd | PartFound::Large | PartFound::Unreadable => 0,
    }
}
