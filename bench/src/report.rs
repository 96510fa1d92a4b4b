//! The report of a run. It is written after each section, so that an interrupted run keeps its results.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{machine::Machine, row::Row};

/// The results of one section.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) section: &'static str,
    pub(crate) title: &'static str,
    pub(crate) rows: Vec<Row>,
    /// Why the section failed.
    pub(crate) failure: Option<String>,
    pub(crate) seconds: f64,
}

#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) began: String,
    /// Small sizes, to try the program; the figures are meaningless.
    pub(crate) quick: bool,
    pub(crate) rounds: usize,
    pub(crate) measured: Vec<Measured>,
}

impl Report {
    /// Whether every section succeeded and every goal is met.
    pub(crate) fn is_good(&self) -> bool {
        self.measured.iter().all(|measured| {
            measured.failure.is_none() && measured.rows.iter().all(|row| row.reached() != Some(false))
        })
    }

    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("# Benchmark of {}: medians of {} rounds\n\n", self.began, self.rounds);
        if self.quick {
            text.push_str("**Small sizes, to try the program. These figures are meaningless.**\n\n");
        }
        text.push_str(&self.machine.markdown());
        for measured in &self.measured {
            // Writing to a String does not fail.
            let _ = write!(text, "\n## {}: {}\n\n", measured.section, measured.title);
            if let Some(failure) = &measured.failure {
                let _ = writeln!(text, "**This section failed: {}**\n", failure.replace('\n', " "));
            }
            text.push_str(&table(&measured.rows));
        }
        text
    }

    fn json(&self) -> Value {
        let rows = self
            .measured
            .iter()
            .flat_map(|measured| measured.rows.iter().map(|row| row.json(measured.section)));
        let sections = self.measured.iter().map(|measured| {
            json!({"section": measured.section, "seconds": measured.seconds, "failure": measured.failure})
        });
        json!({
            "began": self.began, "quick": self.quick, "rounds": self.rounds, "machine": self.machine.json(),
            "sections": sections.collect::<Vec<_>>(), "rows": rows.collect::<Vec<_>>(),
        })
    }

    /// Writes `NAME.md` and `NAME.json`.
    pub(crate) fn write(&self, name: &Path) -> anyhow::Result<[PathBuf; 2]> {
        let [table, json] = ["md", "json"].map(|ending| name.with_extension(ending));
        fs::write(&table, self.markdown())?;
        fs::write(&json, serde_json::to_string_pretty(&self.json())? + "\n")?;
        Ok([table, json])
    }
}

fn table(rows: &[Row]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&Row::HEADS.map(str::to_owned));
    text.push_str(&line(&Row::HEADS.map(|_| "---".to_owned())));
    for row in rows {
        text.push_str(&line(&row.cells().map(|cell| cell.trim().replace('|', "\\|"))));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_one_line_per_row_and_escapes_bars() {
        let text = table(&[Row::new("a|b", "ms", 1.0), Row::new("c", "", 2.0)]);
        assert_eq!(text.lines().count(), 4);
        assert!(text.contains("| a\\|b |"), "{text}");
        assert!(text.contains("| 2 |"), "{text}");
    }
}
