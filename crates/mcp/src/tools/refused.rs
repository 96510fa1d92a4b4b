//! Why a tool did nothing, and what an agent can do about it.

use loopback::{Failure, Problem};
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::json;

use crate::text::{Few, Text};

/// A refusal of the API, or of a tool.
#[derive(Debug, Serialize)]
pub(crate) struct Refused {
    pub(crate) code: Text<64>,
    message: Text<1500>,
    /// Faults in single fields.
    errors: Few<Fault, 20>,
    what_to_do: &'static str,
    request_id: Option<Text<128>>,
}

#[derive(Debug, Serialize)]
struct Fault {
    at: Text,
    code: Text<64>,
    detail: Text<500>,
}

const REPEAT: &str = "Wait a few seconds, and call the tool again.";
const CHANGE: &str = "Change the arguments as the message says, and call the tool again.";

impl Refused {
    pub(super) fn new(code: &str, message: &str, what_to_do: &'static str) -> Self {
        let errors = Few { items: Vec::new(), more: 0 };
        Self { code: Text::new(code), message: Text::new(message), errors, what_to_do, request_id: None }
    }

    pub(super) fn arguments(error: &str) -> Self {
        Self::new("invalid_arguments", &format!("The arguments are not valid: {error}."), CHANGE)
    }

    pub(super) fn too_large() -> Self {
        let message = "The answer is larger than a tool may return.";
        Self::new("too_large", message, "Ask for less: a lower limit, fewer lines, or one task.")
    }

    pub(crate) fn too_slow() -> Self {
        let message = "The service did not answer in time. A change may still take effect.";
        Self::new("timeout", message, "Look at the job before you repeat a change.")
    }

    pub(crate) fn internal() -> Self {
        let message = "The service could not read an answer of its own.";
        Self::new("internal", message, "Report it to the operator; the log has the cause.")
    }

    pub(crate) fn busy() -> Self {
        Self::new("tools_busy", "Too many tools run at the same time. Nothing was done.", REPEAT)
    }

    fn of_problem(problem: &Problem) -> Self {
        let what_to_do = advice(&problem.code);
        let errors: Vec<_> = problem.errors.iter().map(Fault::from).collect();
        Self {
            errors: errors.into(),
            request_id: problem.request_id.as_deref().map(Text::new),
            ..Self::new(&problem.code, &format!("{}: {}", problem.title, problem.detail), what_to_do)
        }
    }

    /// No data: the schema of a tool's data is for answers.
    pub(crate) fn into_result(self) -> CallToolResult {
        // In our own words: the message may quote others.
        let text = format!("{}: {}", self.code.as_str(), self.what_to_do);
        let details = json!({"error": self}).to_string();
        CallToolResult::error(vec![ContentBlock::text(text), ContentBlock::text(details)])
    }
}

impl From<&loopback::Fault> for Fault {
    fn from(fault: &loopback::Fault) -> Self {
        let place = fault.pointer.as_deref().or(fault.parameter.as_deref()).unwrap_or_default();
        Self { at: Text::new(place), code: Text::new(&fault.code), detail: Text::new(&fault.detail) }
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(_, Some(problem)) => Self::of_problem(&problem),
            Failure::TooLarge(_) => Self::too_large(),
            Failure::NoAddress => Self::arguments("a value makes no address"),
            Failure::Refused(..) | Failure::Unreadable => Self::internal(),
        }
    }
}

/// What an agent can do that a program cannot, or has to do with other tools.
fn advice(code: &str) -> &'static str {
    match code {
        "forbidden" => {
            "Your token lacks a scope. Ask your user for one; do not try other tools for the same purpose."
        }
        "job_not_found" => {
            "Check the id with list_jobs. The job does not exist, was deleted, or belongs to another owner."
        }
        "no_log_yet" => {
            "This is no proof that the job writes nothing. Read get_status, and call the tool again when it runs."
        }
        "not_failed" => "The attempt has not failed. Read get_status.",
        "wrong_state" => "Read get_status, and decide again.",
        "invalid_request" => "Fix every field that `errors` names, and call the tool again.",
        "idempotency_key_reused" => {
            "The key belongs to another request. Use the first request unchanged, or another key."
        }
        "cluster_not_found" => "Use a cluster of list_partitions.",
        "internal" => "Report it to the operator with the request id.",
        "timeout" => "Look at the job before you repeat a change.",
        "too_many_requests"
        | "database_unavailable"
        | "keys_unavailable"
        | "cluster_unavailable"
        | "cluster_busy"
        | "buffers_busy"
        | "logs_busy"
        | "watchers_busy"
        | "not_ready"
        | "connections_busy" => REPEAT,
        _ => CHANGE,
    }
}
