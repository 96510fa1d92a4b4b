//! The limits of request fields, added to the OpenAPI document, so that generated clients refuse what the service would refuse.
//! `fuzz/api` compares them with the types that parse requests.
//!
//! utoipa's attributes cannot describe list items or map keys, so all limits are in this table.

use serde_json::{Value, json};

use super::{merge, operations};

mod patterns;
#[cfg(test)]
mod tests;

use patterns::{
    CLUSTER, COMPONENT, CONSTRAINT, DURATION, EMAIL, ENV_KEY, FILE, GPU_REQUEST, GRES, GRES_NAME, GRES_TYPE,
    GROUP, HTTP, INDICES, INPUT, KEY_NAME, LABEL, LICENSES, LOGIN, MACHINE, MEMORY, MODE, MOMENT, MOUNT,
    MOUNTED, MPI_PLUGIN, NODES, NOT_BLANK, NOT_EMPTY, ONE_LINE, OPTION_NAME, OPTION_TEXT, PAGE, PARTITION,
    PARTITIONS, PASSWORD, PATH, PLAIN, RESERVATION, RUNTIME, SBATCH_EXPORT, SOME_MEMORY, SWITCHES, TASKS,
    USER, WEBHOOK_SECRET, WORD,
};

/// The limit of one field.
#[derive(Debug, Clone, Copy)]
enum Bound {
    /// A text with this pattern and maximum length.
    Text(&'static str, usize),
    /// A whole number in this range.
    Whole(usize, usize),
    /// A whole number from minus this to this.
    Signed(u32),
    /// A number of hours.
    Hours,
    /// A list of at least one distinct text with this pattern and maximum length.
    Different(&'static str, usize),
    /// A list of texts with this pattern and maximum length.
    Texts(&'static str, usize),
    /// A map: the pattern and maximum length of its keys, the maximum length of its values, the maximum number of entries.
    Map(&'static str, usize, usize, usize),
    /// A map: the pattern and maximum length of its keys, the maximum number of entries.
    Keys(&'static str, usize, usize),
    /// Options of sbatch by name: the pattern and maximum length of a name, the maximum number of options.
    Options(&'static str, usize, usize),
}

use Bound::{Different, Hours, Keys, Map, Options, Signed, Text, Texts, Whole};

const LONGEST_PATH: usize = 3000;

const BOUNDS: &[(&[&str], &[&str], Bound)] = &[
    (&["JobRequest", "PipelineRequest"], &["name"], Text(PLAIN, 500)),
    (&["JobRequest", "PipelineRequest"], &["labels"], Map(PLAIN, 500, 500, 64)),
    (&["PipelineRequest", "PipelineRetryRequest"], &["jobs"], Keys(WORD, 100, 1000)),
    (&["TokenRequest"], &["owner", "name"], Text(ONE_LINE, 200)),
    (&["NeedRequest"], &["job", "name"], Text(WORD, 100)),
    (&["JobRequest", "ComponentRequest", "BalanceRequest"], &["image"], Text(NOT_BLANK, 4096)),
    (&["JobRequest"], &["network_arch", "action"], Text(WORD, 100)),
    (&["JobRequest", "ContainerJob"], &["docker_env_vars"], Map(ENV_KEY, 128, 32_768, 1000)),
    (&["JobRequest", "RetryRequest"], &["secret_env_vars"], Map(ENV_KEY, 128, 32_768, 1000)),
    (&["RetryRequest"], &["components"], Keys(COMPONENT, 32, 24)),
    (&["JobRequest"], &["inputs"], Texts(INPUT, LONGEST_PATH)),
    (&["JobRequest", "ComponentRequest"], &["command"], Text(NOT_BLANK, 262_144)),
    (&["ComponentRequest"], &["name"], Text(COMPONENT, 32)),
    (&["ComponentRequest"], &["nodes"], Whole(1, 1024)),
    (&["ComponentRequest"], &["workdir"], Text(PATH, LONGEST_PATH)),
    (&["ComponentRequest"], &["env", "secret_env"], Map(ENV_KEY, 128, 32_768, 1000)),
    (&["ComponentRequest"], &["node_env"], Map(ENV_KEY, 128, 128, 1000)),
    (&["ReadyRequest"], &["http"], Text(PAGE, 1000)),
    (&["ReadyRequest"], &["file"], Text(PATH, LONGEST_PATH)),
    (&["ReadyRequest"], &["log_pattern"], Text(PLAIN, 1000)),
    (&["BodyRequest"], &["pattern"], Text(PLAIN, 1000)),
    (&["JobRequest"], &["setup"], Texts(NOT_BLANK, 4096)),
    (&["JobRequest"], &["workdir"], Text(PATH, LONGEST_PATH)),
    (&["JobRequest"], &["files"], Keys(FILE, 200, 64)),
    (&["FileRequest"], &["mode"], Text(MODE, 4)),
    (&["ProgressRequest"], &["file"], Text(NOT_EMPTY, LONGEST_PATH)),
    (&["LauncherSettings"], &["args"], Texts(PLAIN, 1000)),
    (&["LauncherSettings"], &["nproc_per_node"], Whole(1, 1024)),
    (&["LauncherSettings"], &["plugin"], Text(MPI_PLUGIN, 32)),
    (&["ClusterSettings"], &["mpi_plugin"], Text(MPI_PLUGIN, 32)),
    (&["ArrayRequest"], &["indices"], Text(INDICES, 10_000)),
    (&["CancelRequest", "RetryRequest"], &["tasks"], Text(TASKS, 10_000)),
    (&["ArrayRequest"], &["matrix"], Keys(ENV_KEY, 128, 100)),
    (&["JobRequest"], &["num_gpu"], Whole(0, 8192)),
    (&["ResultRequest"], &["name"], Text(WORD, 100)),
    (&["ResultRequest"], &["json_line"], Text(PLAIN, 200)),
    (&["ResultRequest"], &["json_file"], Text(NOT_BLANK, LONGEST_PATH)),
    (&["ResultRequest"], &["regex"], Text(NOT_EMPTY, 1000)),
    (&["ResultRequest"], &["component"], Text(COMPONENT, 32)),
    (&["ResourcesRequest", "ClusterSettings"], &["num_nodes"], Whole(1, 1024)),
    (&["ResourcesRequest", "ClusterSettings"], &["num_gpus"], Whole(0, 8192)),
    (&["ResourcesRequest"], &["gpus_per_node"], Whole(0, 64)),
    (&["ResourcesRequest", "ClusterSettings"], &["max_num_gpus_per_node"], Whole(1, 64)),
    (&["ResourcesRequest", "ClusterSettings"], &["cpus_per_task"], Whole(1, 4096)),
    (&["ResourcesRequest", "ClusterSettings"], &["tasks_per_node"], Whole(1, 1024)),
    (&["ResourcesRequest", "ClusterSettings"], &["time_hours", "timeout_hours"], Hours),
    (&["ResourcesRequest", "ClusterSettings"], &["gpu_type"], Text(GRES_TYPE, 64)),
    (&["ResourcesRequest", "ClusterSettings"], &["constraint"], Text(CONSTRAINT, 500)),
    (&["ResourcesRequest", "ClusterSettings"], &["nodelist", "exclude"], Text(NODES, 1024)),
    (&["ResourcesRequest", "ClusterSettings"], &["licenses"], Text(LICENSES, 500)),
    (&["ResourcesRequest", "ClusterSettings"], &["switches"], Text(SWITCHES, 64)),
    (&["GresRequest"], &["name"], Text(GRES_NAME, 64)),
    (&["GresRequest"], &["type"], Text(GRES_TYPE, 64)),
    (&["GresRequest"], &["count"], Whole(1, 1_000_000)),
    (&["MemoryPer"], &["per_node"], Text(MEMORY, 10)),
    (&["MemoryPer"], &["per_cpu", "per_gpu"], Text(SOME_MEMORY, 10)),
    (&["BackendDetails"], &["account"], Text(PARTITION, 64)),
    (&["BackendDetails", "ClusterSettings"], &["qos"], Text(PARTITION, 64)),
    (&["BackendDetails", "ClusterSettings"], &["reservation"], Text(RESERVATION, 256)),
    (&["BackendDetails", "ClusterSettings"], &["nice"], Signed(2_147_483_645)),
    (&["BackendDetails"], &["begin", "deadline"], Text(MOMENT, 40)),
    (&["BackendDetails", "ClusterSettings"], &["comment"], Text(OPTION_TEXT, 1000)),
    (&["BackendDetails", "ClusterSettings"], &["sbatch_options"], Options(OPTION_NAME, 64, 50)),
    (&["ClusterSettings"], &["gpu_request"], Text(GPU_REQUEST, 13)),
    (&["ClusterSettings"], &["container_runtime"], Text(RUNTIME, 9)),
    (&["ClusterSettings"], &["memory"], Text(MEMORY, 10)),
    (&["ClusterSettings"], &["memory_per_cpu", "memory_per_gpu"], Text(SOME_MEMORY, 10)),
    (&["ClusterSettings"], &["gres"], Texts(GRES, 140)),
    (&["ContainerRequest", "ComponentContainer"], &["mounts"], Texts(MOUNT, LONGEST_PATH)),
    (&["BackendDetails"], &["partition"], Text(PARTITIONS, 1024)),
    (&["BackendDetails"], &["cluster_name"], Text(CLUSTER, 64)),
    (&["WebhookRequest"], &["url"], Text(HTTP, 2000)),
    (&["WebhookRequest"], &["secret"], Text(WEBHOOK_SECRET, 94)),
    (&["ContainerJob"], &["neural_network_name", "action_name"], Text(WORD, 100)),
    (&["ContainerJob"], &["statefulset_replicas"], Whole(0, 1024)),
    (&["EnrootCredentials"], &["machine"], Text(MACHINE, 253)),
    (&["EnrootCredentials"], &["login"], Text(LOGIN, 4096)),
    (&["EnrootCredentials"], &["password"], Text(PASSWORD, 4096)),
    (&["ClusterSettings"], &["name"], Text(CLUSTER, 64)),
    (&["ClusterSettings"], &["user"], Text(USER, 32)),
    (&["ClusterSettings"], &["hosts"], Texts(NOT_BLANK, 300)),
    (&["ClusterSettings"], &["ssh_key"], Text(KEY_NAME, 100)),
    (&["ClusterSettings"], &["host_keys"], Texts(NOT_BLANK, 16_384)),
    (&["ClusterSettings"], &["account", "conversion_partition"], Text(PARTITION, 64)),
    (&["ClusterSettings"], &["partitions"], Different(PARTITION, 64)),
    (&["ClusterSettings"], &["base_results_dir"], Text(MOUNTED, LONGEST_PATH)),
    (&["ClusterSettings"], &["sqsh_cache_dir", "enroot_temp_dir"], Text(PATH, LONGEST_PATH)),
    (&["ClusterSettings"], &["container_mounts"], Texts(MOUNT, LONGEST_PATH)),
    (&["ClusterSettings"], &["node_local_paths"], Texts(PATH, LONGEST_PATH)),
    (&["ClusterSettings"], &["max_time_hours"], Hours),
    (&["ClusterSettings"], &["conversion_minutes"], Whole(1, 1440)),
    (&["ClusterSettings"], &["conversion_memory_gb"], Whole(1, 4096)),
    (&["ClusterSettings"], &["max_retries"], Whole(0, 100)),
    (&["RestartRequest"], &["max_infrastructure"], Whole(0, 100)),
    (&["RestartRequest"], &["max_total_hours"], Hours),
    (&["RestartRequest"], &["delay_seconds"], Whole(0, 86_400)),
    (&["ClusterSettings"], &["max_requeues"], Whole(0, 1000)),
    (&["ClusterSettings"], &["node_exclusion_hours"], Whole(0, 8760)),
    (&["ClusterSettings"], &["mail_user"], Text(EMAIL, 254)),
    (&["ClusterSettings"], &["warning_seconds"], Whole(0, 65_535)),
    (&["ClusterSettings"], &["sbatch_export"], Text(SBATCH_EXPORT, 3)),
    (&["ClusterSettings"], &["sessions"], Whole(1, 4)),
    (&["ClusterSettings"], &["usage_seconds"], Whole(0, 3600)),
    (&["IdlePolicySettings"], &["below_percent"], Whole(1, 100)),
    (&["IdlePolicySettings"], &["minutes"], Whole(1, 10_080)),
    (&["IdlePolicySettings"], &["exempt_labels"], Texts(NOT_EMPTY, 1001)),
    (&["RpcBudgetSettings"], &["burst", "per_minute"], Whole(1, 60_000)),
    (&["ClusterSettings"], &["connect_timeout", "poll_min", "poll_max"], Text(DURATION, 100)),
];

/// The limits of parameters, by name.
const PARAMETERS: &[(&str, Bound)] = &[
    ("cluster", Texts(CLUSTER, 64)),
    ("partition", Texts(PARTITION, 64)),
    ("label", Texts(LABEL, LONGEST_LABEL)),
    ("group_by", Text(GROUP, LONGEST_GROUP)),
];

/// A key, a colon and a value.
const LONGEST_LABEL: usize = 1001;
/// `label:` and a key.
const LONGEST_GROUP: usize = 506;

/// Each schema and field of [`BOUNDS`] with its limit.
fn bounds() -> impl Iterator<Item = (&'static str, &'static str, Bound)> {
    BOUNDS.iter().flat_map(|(schemas, fields, bound)| {
        schemas.iter().flat_map(|schema| fields.iter().map(|field| (*schema, *field, *bound)))
    })
}

/// Adds the limits. A test finds rows without a field.
pub(super) fn put(document: &mut Value) {
    for (schema, field, bound) in bounds() {
        if let Some(field) = document.pointer_mut(&format!("/components/schemas/{schema}/properties/{field}"))
        {
            if let Map(..) | Keys(..) = bound {
                // The macros repeat the map's own attributes there.
                field["propertyNames"] = Value::Null;
            }
            merge(field, bound.schema());
        }
    }
    // Memory and launchers are a text or an object, and the macros describe the text of an untagged enum without attributes.
    merge(&mut document["components"]["schemas"]["MemoryBody"]["oneOf"][0], Text(MEMORY, 10).schema());
    let kinds = document["components"]["schemas"]["LauncherSettings"]["properties"]["kind"]["enum"].clone();
    merge(&mut document["components"]["schemas"]["LauncherBody"]["oneOf"][0], json!({"enum": kinds}));
    let codes = json!({"items": {"minimum": 1, "maximum": 255}});
    merge(&mut document["components"]["schemas"]["RestartRequest"]["properties"]["exit_codes"], codes);
    let own = &mut document["components"]["schemas"]["RetryRequest"]["properties"]["components"];
    own["additionalProperties"]["propertyNames"] = Value::Null;
    merge(&mut own["additionalProperties"], Map(ENV_KEY, 128, 32_768, 1000).schema());
    let jobs = &mut document["components"]["schemas"]["PipelineRequest"]["properties"]["jobs"];
    merge(jobs, json!({"minProperties": 1}));
    let parameters =
        operations(document).filter_map(|operation| operation.get_mut("parameters")?.as_array_mut());
    for parameter in parameters.flatten() {
        // A parameter without a value is left out, never null. The macros take `Option` to mean both.
        without_null(&mut parameter["schema"]);
        if let Some((_, bound)) = PARAMETERS.iter().find(|(name, _)| parameter["name"] == **name) {
            merge(&mut parameter["schema"], bound.schema());
        }
    }
}

fn without_null(schema: &mut Value) {
    for list in ["type", "oneOf"] {
        let Some(Value::Array(options)) = schema.get_mut(list) else { continue };
        options.retain(|one| *one != "null" && one["type"] != "null");
        if let [only] = options.as_slice() {
            let only = only.clone();
            *(if list == "type" { &mut schema[list] } else { &mut *schema }) = only;
        }
    }
}

impl Bound {
    fn schema(self) -> Value {
        let text = |pattern: &str, longest| json!({"pattern": pattern, "minLength": 1, "maxLength": longest});
        let names = |pattern, longest| {
            let mut names = json!({"type": "string"});
            merge(&mut names, text(pattern, longest));
            names
        };
        match self {
            Text(pattern, longest) => text(pattern, longest),
            Whole(least, most) => json!({"minimum": least, "maximum": most}),
            Signed(most) => json!({"minimum": -i64::from(most), "maximum": most}),
            Hours => json!({"minimum": 0.0001, "maximum": 1_000_000}),
            Texts(pattern, longest) => json!({"items": text(pattern, longest)}),
            Different(pattern, longest) => {
                json!({"items": text(pattern, longest), "uniqueItems": true, "minItems": 1})
            }
            Options(pattern, longest, most) => {
                let mut values = json!({"type": ["string", "number", "boolean", "null"]});
                merge(&mut values, text(OPTION_TEXT, 1000));
                json!({"propertyNames": names(pattern, longest), "additionalProperties": values, "maxProperties": most})
            }
            Map(pattern, longest_name, longest, most) => {
                let names = names(pattern, longest_name);
                json!({"propertyNames": names, "additionalProperties": {"maxLength": longest}, "maxProperties": most})
            }
            Keys(pattern, longest, most) => {
                json!({"propertyNames": names(pattern, longest), "maxProperties": most})
            }
        }
    }
}
