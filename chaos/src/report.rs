//! The report of a run.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write,
    process::Command,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{audit::Audited, evidence, ledger::Ledger};

/// The checked-out commit, and whether the work tree has changes.
pub(crate) fn commit() -> String {
    let git = Command::new("git").args(["describe", "--always", "--dirty"]).output().ok();
    git.map(|git| String::from_utf8_lossy(&git.stdout).trim().to_owned()).unwrap_or_default()
}

#[derive(Debug)]
pub(crate) struct Report {
    seed: u64,
    duration: u64,
    commit: String,
    slurm: String,
    settled: Duration,
    kinds: HashMap<&'static str, usize>,
    faults: BTreeMap<String, usize>,
    pub(crate) audited: Audited,
    pub(crate) gpu_time: Vec<String>,
    pub(crate) panics: Vec<String>,
}

impl Report {
    /// `commit` is the commit of the program under test at the start of the run.
    pub(crate) fn new(
        seed: u64,
        duration: u64,
        commit: String,
        slurm: &str,
        settled: Duration,
        ledger: &Ledger,
    ) -> Self {
        let kinds = evidence::kinds(&ledger.lock().jobs);
        Self {
            seed,
            duration,
            commit,
            slurm: slurm.to_owned(),
            settled,
            kinds,
            faults: ledger.faults(),
            audited: Audited::default(),
            gpu_time: Vec::new(),
            panics: Vec::new(),
        }
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.failures().iter().all(|(_, list)| list.is_empty())
    }

    /// The lists that must be empty.
    fn failures(&self) -> [(&'static str, &[String]); 7] {
        [
            ("duplicates executed", &self.audited.duplicates),
            ("lost", &self.audited.lost),
            ("wrong endings", &self.audited.wrong),
            ("stuck", &self.audited.stuck),
            ("orphans on the cluster", &self.audited.orphans),
            ("GPU time", &self.gpu_time),
            ("panics", &self.panics),
        ]
    }

    fn rows(&self) -> Vec<(String, String)> {
        let audited = &self.audited;
        let kinds: BTreeMap<_, _> = self.kinds.iter().collect();
        let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let row = |name: &str, value: String| (name.to_owned(), value);
        let mut rows = vec![
            row("seed", self.seed.to_string()),
            row("commit", self.commit.clone()),
            row("Slurm", self.slurm.clone()),
            row("duration", format!("{} s", self.duration)),
            row("settled after", format!("{:.0} s", self.settled.as_secs_f64())),
            row("jobs", format!("{} ({})", audited.jobs, kinds.join(", "))),
            row("attempts", audited.attempts.to_string()),
            row("executions", audited.executions.to_string()),
            row("faults", self.faults.values().sum::<usize>().to_string()),
        ];
        rows.extend(self.failures().iter().map(|(name, list)| row(name, list.len().to_string())));
        rows.push(row("second copies that did not run", audited.second_copies.to_string()));
        rows.push(row("failed because of the cluster, as reported", audited.given_up.len().to_string()));
        rows.push(row("longest detection delay", format!("{:.1} s", audited.longest_delay)));
        rows.push(row("median detection delay", format!("{:.1} s", audited.median_delay)));
        rows
    }

    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        for (name, value) in self.rows() {
            let _ = writeln!(text, "{name:36} {value}");
        }
        let _ = writeln!(text, "\nfaults by kind");
        for (fault, count) in &self.faults {
            let _ = writeln!(text, "  {fault:34} {count}");
        }
        let given_up = ("failed because of the cluster, as reported", self.audited.given_up.as_slice());
        for (name, list) in self.failures().iter().chain([&given_up]).filter(|(_, list)| !list.is_empty()) {
            let _ = writeln!(text, "\n{name}");
            for line in *list {
                let _ = writeln!(text, "  {line}");
            }
        }
        text
    }

    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("| seed {} | |\n|---|---|\n", self.seed);
        for (name, value) in self.rows().into_iter().skip(1) {
            let _ = writeln!(text, "| {name} | {value} |");
        }
        let faults: Vec<String> =
            self.faults.iter().map(|(fault, count)| format!("{fault} {count}")).collect();
        let _ = writeln!(text, "| faults by kind | {} |", faults.join(", "));
        text
    }

    pub(crate) fn json(&self) -> Value {
        let failures: BTreeMap<&str, &[String]> = self.failures().into_iter().collect();
        json!({
            "seed": self.seed, "commit": self.commit, "slurm": self.slurm, "duration_seconds": self.duration,
            "settled_seconds": self.settled.as_secs_f64(), "jobs": self.audited.jobs, "kinds": self.kinds,
            "attempts": self.audited.attempts, "executions": self.audited.executions, "faults": self.faults,
            "failures": failures, "second_copies": self.audited.second_copies, "given_up": self.audited.given_up,
            "longest_detection_seconds": self.audited.longest_delay,
            "median_detection_seconds": self.audited.median_delay,
        })
    }
}
