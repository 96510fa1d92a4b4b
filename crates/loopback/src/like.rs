//! The request of a job like another one, from what the API shows of that.

use serde_json::{Map, Value, json};

/// Fields whose values the API shows as a request has them.
const SAME: [&str; 19] = [
    "name",
    "labels",
    "image",
    "network_arch",
    "action",
    "specs",
    "command",
    "launcher",
    "setup",
    "workdir",
    "docker_env_vars",
    "inputs",
    "results",
    "retry",
    "restart",
    "timeout_minutes",
    "use_requeue",
    "needs",
    "cloud_metadata",
];
const RESOURCES: [&str; 16] = [
    "num_nodes",
    "gpus_per_node",
    "max_num_gpus_per_node",
    "tasks_per_node",
    "cpus_per_task",
    "time_hours",
    "master_port",
    "memory",
    "gpu_type",
    "gres",
    "constraint",
    "exclusive",
    "nodelist",
    "exclude",
    "licenses",
    "switches",
];
const PLACE: [&str; 10] = [
    "cluster_name",
    "partition",
    "account",
    "qos",
    "reservation",
    "nice",
    "deadline",
    "comment",
    "sbatch_options",
    "backend_type",
];
const CONTAINER: [&str; 6] =
    ["mounts", "runtime", "use_sqsh", "require_sqsh", "force_reconvert_latest", "mount_home"];
/// What the API shows of a job, but not in full, and the field of a request.
const LOST: [(&str, &str); 6] = [
    ("secret_env_vars", "secret_env_vars"),
    ("secret_cloud_metadata", "cloud_metadata"),
    ("files", "files"),
    ("steps", "steps"),
    ("services", "services"),
    ("array", "array"),
];
/// What a request like a job's never has, for people. The first two are in no answer; the others belong to the old job's times.
pub const NOT_COPIED: &str = "A webhook, an idle policy, a soft time limit and a later begin are not copied.";

/// The request of a job like this one, an answer to `GET /jobs/{id}`. Fields without a value are left out.
pub fn request_like(job: &Value) -> Value {
    let mut request = picked(job, &SAME);
    request.insert("resources".to_owned(), Value::Object(picked(&job["resources"], &RESOURCES)));
    request.insert("backend_details".to_owned(), Value::Object(picked(&job["backend_details"], &PLACE)));
    if request.contains_key("image") {
        request.insert("container".to_owned(), Value::Object(picked(&job["container"], &CONTAINER)));
    }
    if !job["progress_file"].is_null() {
        let progress = json!({"file": job["progress_file"], "total": job["progress_total"]});
        request.insert("progress".to_owned(), progress);
    }
    // `specs` are the owner's own.
    request.iter_mut().filter(|(name, _)| *name != "specs").for_each(|(_, value)| strip(value));
    Value::Object(request)
}

/// The fields of the request that the job had and that its answer shows in part at most.
pub fn shown_in_part(job: &Value) -> impl Iterator<Item = &'static str> {
    LOST.into_iter().filter(|(shown, _)| !is_nothing(&job[*shown])).map(|(_, field)| field)
}

fn picked(from: &Value, names: &[&str]) -> Map<String, Value> {
    let values = names.iter().filter_map(|name| Some(((*name).to_owned(), from.get(*name)?.clone())));
    values.filter(|(_, value)| !is_nothing(value)).collect()
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document;

    #[test]
    fn empty_fields_are_not_copied_but_those_of_specs_are() {
        let job = json!({
            "name": null, "labels": {}, "specs": {"a": null}, "launcher": {"kind": "mpi", "plugin": null},
            "resources": {"num_nodes": 1, "memory": {"per_node": "1G", "per_cpu": null}, "total_gpus": 4},
            "backend_details": {"cluster_name": "dgx", "slurm_metadata": {"x": 1}}
        });
        let wanted = json!({
            "specs": {"a": null}, "launcher": {"kind": "mpi"}, "resources": {"num_nodes": 1, "memory": {"per_node": "1G"}},
            "backend_details": {"cluster_name": "dgx"}
        });
        assert_eq!(request_like(&job), wanted);
    }

    #[test]
    fn what_the_answer_has_only_in_part_is_named() {
        let job = json!({"files": ["a"], "steps": [], "secret_env_vars": ["TOKEN"], "array": {"tasks": 3}});
        assert_eq!(shown_in_part(&job).collect::<Vec<_>>(), ["secret_env_vars", "files", "array"]);
    }

    #[test]
    fn no_field_of_a_request_is_forgotten() {
        let parts = ["resources", "backend_details", "container", "progress"];
        // The job has an id of its own, and answers have `gpus_per_node` for the two others.
        let others = ["id", "num_gpu", "num_gpus"];
        // As NOT_COPIED says.
        let told = ["webhook", "idle_policy", "timeout_hours", "begin"];
        let known =
            |names: &[&str], name: &str| [names, &others, &told].iter().any(|list| list.contains(&name));
        let is_lost = |name: &str| LOST.iter().any(|(_, field)| *field == name);
        let mut forgotten = document::properties("JobRequest");
        forgotten.retain(|name| !known(&SAME, name) && !parts.contains(&name.as_str()) && !is_lost(name));
        assert_eq!(forgotten, [""; 0]);
        for (schema, names) in [
            ("ResourcesRequest", &RESOURCES[..]),
            ("BackendDetails", &PLACE),
            ("ContainerRequest", &CONTAINER),
        ] {
            let properties = document::properties(schema);
            assert!(properties.len() > 3, "{schema}: {properties:?}");
            let forgotten: Vec<_> = properties.iter().filter(|name| !known(names, name)).collect();
            assert_eq!(forgotten, [""; 0], "{schema}");
        }
    }
}
