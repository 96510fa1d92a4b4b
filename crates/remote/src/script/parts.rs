//! What components and their launchers have in common.

use super::{ScriptError, quoted};

/// What a component is to its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It starts when the steps before it have ended. The job fails with the first of its steps.
    Step,
    /// A step that starts together with the component before it.
    With,
    /// It runs beside the steps that follow, must not end before them, and is ended after them.
    Service,
    /// A service that needs the services before it: it is ended before them.
    Proxy,
}

/// Neighboring nodes of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nodes {
    /// The number of the first, from 0.
    pub first: u32,
    /// How many.
    pub count: u32,
}

/// The value of a variable. The names of nodes are known only when the job has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// This text.
    Text(String),
    /// The names of nodes of the job, separated by spaces.
    Hosts(Nodes),
    /// The name of a node of the job and a port, joined by a colon.
    HostPort(u32, u16),
    /// A port of the job on its first node, by its number among them.
    Port(u32),
    /// The URL of a port of a node.
    Url {
        /// The number of the node.
        node: u32,
        /// The port.
        port: Box<Value>,
    },
    /// Several values, separated by commas.
    List(Vec<Value>),
}

impl Value {
    /// The port of a service, which is the component of this number. The ports before are for what a launcher's processes meet at, those
    /// behind are Ray's.
    pub fn service_port(place: u32) -> Self {
        Self::Port(24 + place % 24)
    }

    /// The value in a word of shell.
    pub(super) fn word(&self) -> Result<String, ScriptError> {
        Ok(match self {
            Self::Text(text) => quoted("the value of a variable", text)?,
            Self::Hosts(Nodes { first, count }) => format!("\"$(_tao_slice {first} {count} ' ')\""),
            Self::Port(0) => "\"$_tao_port\"".to_owned(),
            Self::Port(number) => format!("\"$((_tao_port + {number}))\""),
            Self::Url { node, port } => format!("http://\"${{_tao_hosts[{node}]}}\":{}", port.word()?),
            Self::HostPort(host, port) => format!("\"${{_tao_hosts[{host}]}}\":{port}"),
            Self::List(values) => values.iter().map(Self::word).collect::<Result<Vec<_>, _>>()?.join(","),
        })
    }
}
