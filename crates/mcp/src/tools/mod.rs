//! The tools, with their schemas.

mod answer;
mod changes;
mod clusters;
mod control;
mod explain;
mod job;
mod list;
mod logs;
mod refused;
mod retry;
mod status;
mod submit;

use std::{future::Future, pin::Pin, sync::LazyLock};

use loopback::Api;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

pub(crate) use answer::Answer;
pub(crate) use refused::Refused;

type Running = Pin<Box<dyn Future<Output = Result<Answer, Refused>> + Send>>;

/// A tool.
pub(crate) struct Offered {
    pub(crate) shown: Tool,
    pub(crate) run: Box<dyn Fn(Api, JsonObject) -> Running + Send + Sync>,
}

/// What a tool does to the world.
#[derive(Debug, Clone, Copy)]
enum Effect {
    Reads,
    /// Stores something new. The same call again does nothing more.
    Adds,
    /// Ends something. The same call again does nothing more.
    Ends,
}

impl Effect {
    /// Only what runs programs of the caller reaches beyond the clusters.
    fn annotations(self) -> ToolAnnotations {
        ToolAnnotations::new()
            .read_only(matches!(self, Self::Reads))
            .destructive(matches!(self, Self::Ends))
            .idempotent(true)
            .open_world(matches!(self, Self::Adds))
    }
}

/// A tool that takes `A` and returns `D`.
fn offered<A, D, F>(
    name: &'static str,
    description: &'static str,
    effect: Effect,
    run: impl Fn(Api, A) -> F + Clone + Send + Sync + 'static,
) -> Offered
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    D: JsonSchema,
    F: Future<Output = Result<answer::Of<D>, Refused>> + Send + 'static,
{
    let shown = Tool::new(name, description, answer::schema_of::<A>())
        .with_raw_output_schema(answer::output_schema_of::<D>().into())
        .with_annotations(effect.annotations());
    let run = move |api, arguments: JsonObject| -> Running {
        let run = run.clone();
        Box::pin(async move {
            let arguments = serde_json::from_value(arguments.into())
                .map_err(|error| Refused::arguments(&error.to_string()))?;
            run(api, arguments).await?.checked()
        })
    };
    Offered { shown, run: Box::new(run) }
}

static TOOLS: LazyLock<[Offered; 9]> = LazyLock::new(|| {
    [
        offered("submit_job", submit::ABOUT, Effect::Adds, submit::run),
        offered("get_status", status::ABOUT, Effect::Reads, status::run),
        offered("get_logs", logs::ABOUT, Effect::Reads, logs::run),
        offered("cancel_job", control::ABOUT, Effect::Ends, control::cancel),
        offered("retry_job", retry::ABOUT, Effect::Adds, retry::run),
        offered("explain_job", explain::ABOUT, Effect::Reads, explain::run),
        offered("list_jobs", list::ABOUT, Effect::Reads, list::run),
        offered("list_partitions", clusters::PARTITIONS, Effect::Reads, clusters::partitions),
        offered("preflight", clusters::PREFLIGHT, Effect::Reads, clusters::preflight),
    ]
});

pub(crate) fn all() -> impl Iterator<Item = &'static Offered> {
    TOOLS.iter()
}

pub(crate) fn find(name: &str) -> Option<&'static Offered> {
    all().find(|tool| tool.shown.name == name)
}
