//! When a service is ready, and what becomes of one that fails.

use std::fmt::Write;

use slurm::RemotePath;

use super::{
    ScriptError,
    parts::{Nodes, Value},
    quoted,
};

/// The rules of a service. Times are in seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRules {
    /// What shows that it works. Without one it is ready when it has begun.
    pub probe: Option<Probe>,
    /// Between two probes until it is ready.
    pub every: u32,
    /// The most that a probe may take.
    pub probe_limit: u32,
    /// In which it must be ready.
    pub ready_limit: u32,
    /// Between two probes from then on; none if 0.
    pub live_every: u32,
    /// How many of these may fail in a row.
    pub most_missed: u32,
    /// How often it may start again.
    pub most_again: u32,
}

/// What shows that a service works, asked from the first node of the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// A node of the job accepts a connection to a port.
    Tcp {
        /// The number of the node.
        node: u32,
        /// The port.
        port: Value,
    },
    /// A page is there.
    Http {
        /// The number of the node.
        node: u32,
        /// The port.
        port: Value,
        /// The path of the page.
        path: String,
        /// The status of the answer.
        status: u16,
        /// What the body must have (an expression as of `grep -E`), and how often.
        body: Option<(String, u32)>,
    },
    /// A file exists.
    File(RemotePath),
    /// A line of the logs of the service's first task, since its start, matches an expression as of `grep -E`.
    Log(String),
}

impl ServiceRules {
    /// The line of the table that gives the rules to the service before it.
    pub(super) fn line(&self, out: &mut String) -> Result<(), ScriptError> {
        let Self { every, probe_limit, ready_limit, live_every, most_missed, most_again, probe } = self;
        let _ = write!(
            out,
            "  _tao_watch_it {every} {probe_limit} {ready_limit} {live_every} {most_missed} {most_again}"
        );
        for word in probe.iter().map(Probe::words).collect::<Result<Vec<_>, _>>()?.concat() {
            out.push(' ');
            out.push_str(&word);
        }
        out.push('\n');
        Ok(())
    }
}

impl Probe {
    fn words(&self) -> Result<Vec<String>, ScriptError> {
        let host = |node: u32| Value::Hosts(Nodes { first: node, count: 1 }).word();
        Ok(match self {
            Self::Tcp { node, port } => vec!["tcp".to_owned(), host(*node)?, port.word()?],
            Self::Http { node, port, path, status, body } => {
                let mut words = vec!["http".to_owned(), host(*node)?, port.word()?];
                words.extend([quoted("the path of a probe", path)?, status.to_string()]);
                let (pattern, least) = body.as_ref().map_or(("", 0), |(pattern, least)| (pattern, *least));
                words.extend([quoted("the pattern of a probe", pattern)?, least.to_string()]);
                words
            }
            Self::File(path) => vec!["file".to_owned(), quoted("the file of a probe", path.as_str())?],
            Self::Log(pattern) => vec!["log".to_owned(), quoted("the pattern of a probe", pattern)?],
        })
    }
}
