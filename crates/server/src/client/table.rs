//! Jobs in columns.

use super::{progress::StatusDocument, terminal::on_one_line};

const HEAD: [&str; 7] = ["ID", "STATUS", "CLUSTER", "SLURM", "CREATED", "PROGRESS", "NAME"];

/// One line a job below a line of headings.
pub(crate) fn table(jobs: &[StatusDocument]) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(jobs.iter().map(row));
    columns(&rows)
}

/// Rows in columns as wide as their widest cell; the last is not filled up.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let rows: Vec<_> = rows.iter().map(|row| row.each_ref().map(|cell| on_one_line(cell))).collect();
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn row(job: &StatusDocument) -> [String; HEAD.len()] {
    // To the second, in UTC, as the service wrote it.
    let created = job.created_on.get(..19).unwrap_or(&job.created_on).replace('T', " ");
    [
        job.id.clone(),
        job.status.to_string(),
        job.cluster.clone(),
        job.slurm_job_id.clone().unwrap_or_default(),
        created,
        job.progress(),
        job.name.clone().unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let job = |json: &str| serde_json::from_str::<StatusDocument>(json).unwrap();
        let jobs = [
            job(
                r#"{"id": "a", "status": "Canceling", "cluster": "c", "created_on": "2026-11-21T03:04:05.123Z", "name": "n"}"#,
            ),
            job(r#"{"id": "bcd", "status": "Done", "cluster": "c", "name": null}"#),
        ];
        let expected = "\
ID   STATUS     CLUSTER  SLURM  CREATED              PROGRESS  NAME
a    Canceling  c               2026-11-21 03:04:05            n
bcd  Done       c
";
        assert_eq!(table(&jobs), expected);
    }
}
