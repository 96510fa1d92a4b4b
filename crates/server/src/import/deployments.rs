//! What `nemo-evaluator-launcher` 0.2.6 has as defaults, as far as requests of this service need it.

use serde_json::{Value, json};

use super::merge::merge;

/// Its defaults of an execution.
pub(super) fn execution(name: &str) -> Option<Value> {
    (name == "slurm/default").then(|| {
        json!({
            "type": "slurm",
            "partition": "batch",
            "num_nodes": 1,
            "num_instances": 1,
            "gres": "gpu:8",
            "walltime": "01:00:00",
            "max_walltime": "120:00:00",
            "sbatch_extra_flags": {"exclusive": true},
            "mounts": {"deployment": {}, "evaluation": {}, "auxiliary": {}, "mount_home": true},
            "proxy": {"image": "haproxy:latest"},
        })
    })
}

/// Its defaults of a deployment.
pub(super) fn deployment(kind: &str) -> Option<Value> {
    let openai =
        json!({"chat": "/v1/chat/completions", "completions": "/v1/completions", "health": "/health"});
    let model = json!({
        "type": kind, "port": 8000, "tensor_parallel_size": 8, "pipeline_parallel_size": 1, "data_parallel_size": 1,
        "extra_args": "", "endpoints": openai,
    });
    let own = match kind {
        "none" => return Some(json!({"type": "none"})),
        "generic" => json!({}),
        "nim" => json!({
            "command": "/opt/nvidia/nvidia_entrypoint.sh /opt/nim/start_server.sh",
            "endpoints": {"health": "/v1/health/ready"},
        }),
        "vllm" | "vllm_ray" => json!({
            "image": "vllm/vllm-openai:latest",
            "gpu_memory_utilization": 0.95,
            "base_command": "vllm serve ${select_not_null:deployment.hf_model_handle,/checkpoint} \
                --tensor-parallel-size=${deployment.tensor_parallel_size} \
                --pipeline-parallel-size=${deployment.pipeline_parallel_size} \
                --data-parallel-size=${deployment.data_parallel_size} --port ${deployment.port} --trust-remote-code \
                --served-model-name ${deployment.served_model_name} \
                --gpu-memory-utilization ${deployment.gpu_memory_utilization} ${deployment.extra_args}",
            "command": if kind == "vllm" {
                "${deployment.base_command}"
            } else {
                "${deployment.base_command} --distributed-executor-backend ray"
            },
        }),
        "sglang" => json!({
            "image": "lmsysorg/sglang:latest",
            "command": "python3 -m sglang.launch_server \
                --model-path ${select_not_null:deployment.hf_model_handle,/checkpoint} --host 0.0.0.0 \
                --port ${deployment.port} --served-model-name ${deployment.served_model_name} \
                --tp-size ${deployment.tensor_parallel_size} --dp-size ${deployment.data_parallel_size} \
                --pp-size ${deployment.pipeline_parallel_size} ${deployment.extra_args}",
        }),
        "trtllm" => json!({
            "command": "mpirun --allow-run-as-root --oversubscribe trtllm-serve serve /checkpoint \
                --tp_size=${deployment.tensor_parallel_size} --pp_size=${deployment.pipeline_parallel_size} \
                --host 0.0.0.0 --port ${deployment.port} --backend pytorch --trust_remote_code ${deployment.extra_args}",
        }),
        _ => return None,
    };
    let mut whole = model;
    merge(&mut whole, own);
    if kind == "vllm_ray" {
        let variables = json!({
            "VLLM_ENGINE_READY_TIMEOUT_S": "lit:3600", "VLLM_USE_RAY_COMPILED_DAG_CHANNEL_TYPE": "lit:shm",
        });
        merge(&mut whole, json!({"env_vars": variables}));
    }
    Some(whole)
}
