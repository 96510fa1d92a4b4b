//! What jobs ask Slurm for beyond nodes, GPUs, CPUs and time.

use serde::Serialize;
use serde_json::{Map, Value};
use slurm::{Gres, MemoryRequest, OptionValue, SubmitOptions};
use utoipa::ToSchema;

/// Memory, resources and nodes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlacementView {
    /// The memory; null for the partition's default.
    pub memory: Option<MemoryView>,
    /// The type of the GPUs; null for any.
    pub gpu_type: Option<String>,
    /// Further generic resources of each node.
    pub gres: Vec<GresView>,
    /// The features of the nodes; null for any.
    pub constraint: Option<String>,
    /// The nodes that the job needs; null for any.
    pub nodelist: Option<String>,
    /// The nodes that its owner excludes; null for none.
    pub exclude: Option<String>,
    /// The licenses; null for none.
    pub licenses: Option<String>,
    /// The most leaf switches; null for any number.
    pub switches: Option<String>,
}

/// Memory with what it is for. One of the fields is not null.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names of the request")]
pub(crate) struct MemoryView {
    /// Of each node; `0` for all of it.
    pub per_node: Option<String>,
    /// Of each CPU.
    pub per_cpu: Option<String>,
    /// Of each GPU.
    pub per_gpu: Option<String>,
}

/// Some of a generic resource on each node.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GresView {
    /// The resource.
    pub name: String,
    /// Its type; null for any.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// How many of it.
    pub count: u32,
}

/// Account, QOS and other options.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueueView {
    /// The account; null for the user's default.
    pub account: Option<String>,
    /// The quality of service; null for Slurm's default.
    pub qos: Option<String>,
    /// The reservations; null for none.
    pub reservation: Option<String>,
    /// How much the priority is lowered; null for not at all.
    pub nice: Option<i32>,
    /// The owner's comment; null for none.
    pub comment: Option<String>,
    /// Other options of sbatch: texts, `true` for an option without a value, `false` for a line that is left out.
    #[schema(value_type = Object)]
    pub sbatch_options: Map<String, Value>,
}

impl From<&SubmitOptions> for PlacementView {
    fn from(options: &SubmitOptions) -> Self {
        Self {
            memory: options.memory.map(MemoryView::from),
            gpu_type: options.gpu_type.as_ref().map(ToString::to_string),
            gres: options.gres.iter().map(GresView::from).collect(),
            constraint: options.constraint.as_ref().map(ToString::to_string),
            nodelist: options.nodelist.as_ref().map(ToString::to_string),
            exclude: options.exclude.as_ref().map(ToString::to_string),
            licenses: options.licenses.as_ref().map(ToString::to_string),
            switches: options.switches.as_ref().map(ToString::to_string),
        }
    }
}

impl From<MemoryRequest> for MemoryView {
    fn from(memory: MemoryRequest) -> Self {
        let none = Self { per_node: None, per_cpu: None, per_gpu: None };
        match memory {
            MemoryRequest::PerNode(memory) => Self { per_node: Some(memory.to_string()), ..none },
            MemoryRequest::PerCpu(memory) => Self { per_cpu: Some(memory.to_string()), ..none },
            MemoryRequest::PerGpu(memory) => Self { per_gpu: Some(memory.to_string()), ..none },
        }
    }
}

impl From<&Gres> for GresView {
    fn from(gres: &Gres) -> Self {
        let Gres { name, kind, count } = gres;
        Self { name: name.to_string(), kind: kind.as_ref().map(ToString::to_string), count: *count }
    }
}

impl From<&SubmitOptions> for QueueView {
    fn from(options: &SubmitOptions) -> Self {
        let value = |value: &OptionValue| match value {
            OptionValue::Flag => Value::Bool(true),
            OptionValue::Drop => Value::Bool(false),
            OptionValue::Text(text) => Value::String(text.to_string()),
        };
        Self {
            account: options.account.as_ref().map(ToString::to_string),
            qos: options.qos.as_ref().map(ToString::to_string),
            reservation: options.reservation.as_ref().map(ToString::to_string),
            nice: options.nice,
            comment: options.comment.as_ref().map(ToString::to_string),
            sbatch_options: options.others.iter().map(|(name, set)| (name.to_string(), value(set))).collect(),
        }
    }
}
