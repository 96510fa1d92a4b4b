//! The schema of a job in arguments: the fields that most jobs need. The API checks all of them, and names the known ones.

use schemars::{Schema, SchemaGenerator, json_schema};

pub(super) fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "description": "The job, as POST /jobs takes it: either `command`, or `network_arch` and `action` of a TAO job. The fields below are the usual ones; the others of the API are allowed too. Put no secrets here: `node_env` of a component takes them from the cluster.",
        "properties": {
            "name": {"type": "string", "description": "A name for people."},
            "command": {"type": "string", "description": "The shell command. Without `image` it runs on the node itself."},
            "image": {"type": "string", "description": "The container: an image file on the cluster, or a registry image."},
            "network_arch": {"type": "string", "description": "The network of a TAO job."},
            "action": {"type": "string", "description": "The action of a TAO job, such as train."},
            "specs": {"type": "object", "description": "The specification of a TAO job."},
            "docker_env_vars": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Environment variables."},
            "inputs": {"type": "array", "items": {"type": "string"}, "description": "Paths on the cluster that must exist."},
            "workdir": {"type": "string", "description": "The directory that the program starts in."},
            "setup": {"type": "array", "items": {"type": "string"}, "description": "Shell lines that run before the program."},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Labels, to find the job again."},
            "launcher": {"description": "How the command becomes processes: plain, per_node, torchrun, accelerate, deepspeed, mpi or ray, or an object with `kind`."},
            "resources": {
                "type": "object",
                "description": "What the job gets. Without it, the defaults of the cluster, which may be several GPUs.",
                "properties": {
                    "num_nodes": {"type": "integer"},
                    "gpus_per_node": {"type": "integer", "description": "0 for a job without GPUs."},
                    "cpus_per_task": {"type": "integer"},
                    "memory": {"description": "Of each node, such as \"64G\"; or an object with `per_node`, `per_cpu` or `per_gpu`."},
                    "gpu_type": {"type": "string"},
                    "time_hours": {"type": "number", "description": "The time limit. 0.5 is half an hour."}
                }
            },
            "backend_details": {
                "type": "object",
                "properties": {
                    "cluster_name": {"type": "string", "description": "A cluster of list_partitions. Default: the first one."},
                    "partition": {"type": "string", "description": "Partitions, comma-separated."},
                    "account": {"type": "string"},
                    "qos": {"type": "string"}
                }
            }
        },
        "additionalProperties": true
    })
}

/// The same for a part of a job.
pub(super) fn changes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "description": "Fields of the new job that differ from the old one's, as submit_job takes them, such as {\"resources\": {\"memory\": \"64G\"}}. Objects are merged; null leaves a field out. Without it the job itself goes again.",
        "additionalProperties": true
    })
}
