//! The resources of a request. Their values are checked in `resources` and `options`.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The resources of a job.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourcesRequest {
    /// The number of nodes. Default: the cluster's setting, by default 1.
    pub num_nodes: Option<u32>,
    /// The number of GPUs by TAO's rule; prefer `gpus_per_node`. Below `max_num_gpus_per_node` it is the number per node.
    /// From there on the job gets whole nodes: as many as hold this total, and at least `num_nodes`. A warning says if the
    /// job gets another total. Default: the cluster's setting, by default 4.
    pub num_gpus: Option<u32>,
    /// The number of GPUs on each of `num_nodes` nodes, exactly. At most `max_num_gpus_per_node`.
    pub gpus_per_node: Option<u32>,
    /// The number of GPUs in a node of the cluster. Default: the cluster's setting, by default 8.
    pub max_num_gpus_per_node: Option<u32>,
    /// Tasks of each node: the job's command starts so often on each node. A TAO job has one. Default: the cluster's setting, by
    /// default 1.
    pub tasks_per_node: Option<u32>,
    /// CPUs of each task. Default: the cluster's setting, by default 16.
    pub cpus_per_task: Option<u32>,
    /// The Slurm time limit, in hours. Default: the cluster's setting, by default 4.
    pub time_hours: Option<f64>,
    /// The soft time limit of the job, in hours. Default: 0.2 hours less than `time_hours`.
    pub timeout_hours: Option<f64>,
    /// The rendezvous port on the job's first node. Default: 29500 on exclusive nodes, otherwise a port that no other job on
    /// that node uses.
    #[schema(minimum = 1024, maximum = 65535)]
    pub master_port: Option<u32>,
    /// The memory: `"64G"` of each node, `"0"` for all of it, or an object with one of `per_node`, `per_cpu` and `per_gpu`.
    /// Default: the cluster's setting, then the partition's default.
    #[schema(value_type = Option<MemoryBody>)]
    pub memory: Option<Value>,
    /// The type of the GPUs as the site names it, such as `a100` or the MIG type `1g.5gb`. `GET /clusters/{name}/partitions`
    /// lists them. Default: the cluster's setting, then any type.
    pub gpu_type: Option<String>,
    /// Generic resources of each node, such as MPS, shards, or GPUs of several types. These GPUs take the place of
    /// `gpus_per_node`. A job with `mps` or `shard` gets no whole GPUs.
    #[schema(max_items = 20)]
    pub gres: Option<Vec<GresRequest>>,
    /// The features that the nodes must have, such as `a100&nvlink`.
    pub constraint: Option<String>,
    /// Whether no other job may share the nodes. Default: the cluster's setting, then true for a job with all GPUs of its nodes.
    pub exclusive: Option<bool>,
    /// Nodes that the job must get, such as `node[01-02],gpu7`; at most `num_nodes`.
    pub nodelist: Option<String>,
    /// Nodes that the job must not get. The service adds nodes that failed.
    pub exclude: Option<String>,
    /// Licenses, such as `matlab:2,ansys@server:1`.
    pub licenses: Option<String>,
    /// The most leaf switches between the nodes, and how long to wait for so few: `"1"` or `"1@00:30:00"`.
    pub switches: Option<String>,
}

/// Some of a generic resource on each node.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GresRequest {
    /// The resource as the site names it, such as `mps`, `shard` or `gpu`.
    pub name: String,
    /// Its type, such as `1g.5gb`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// How many of it each node needs. Default: 1.
    pub count: Option<u32>,
}

/// Memory of each node, or an object with one of its keys. `options` reads it from JSON, so that each fault names its place.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum MemoryBody {
    /// Of each node, such as `64G`; `0` for all of it.
    Text(String),
    /// One of the keys.
    Per(MemoryPer),
}

/// Memory with what it is for. Give one key.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "the names of the request")]
pub struct MemoryPer {
    /// Of each node; `0` for all of it.
    pub per_node: Option<String>,
    /// Of each CPU.
    pub per_cpu: Option<String>,
    /// Of each GPU.
    pub per_gpu: Option<String>,
}
