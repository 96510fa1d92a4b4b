//! What the search for errors finds in the logs of a fake.

use remote::{Concluding, LogErrors, LogLine};

/// Every line of a job's standard error, if its logs are searched.
pub(crate) fn error_lines(job: &Concluding, err: &[u8]) -> Vec<LogErrors> {
    if !job.may_have_failed {
        return Vec::new();
    }
    let mut offset = 0;
    let line = |text: &[u8]| {
        let line =
            LogLine { offset, text: String::from_utf8_lossy(text).trim_end().to_owned(), is_match: true };
        offset += text.len() as u64;
        line
    };
    let lines = err.split_inclusive(|byte| *byte == b'\n').map(line).collect();
    vec![LogErrors { log: "main.err".to_owned(), lines, has_gaps: false }]
}
