//! What the jobs of a cluster ask Slurm for by default.

use domain::{SubmitSettings, cluster_options};
use serde_json::{Map, Value};
use slurm::{Gres, Memory, MemoryRequest, SubmitOptions};

use super::{cluster_settings::ClusterSettings, faults::Faults};

pub(super) fn submit(settings: &ClusterSettings, faults: &mut Faults) -> Option<SubmitSettings> {
    let gpu_request = settings.gpu_request.parse();
    if gpu_request.is_err() {
        let advice = format_args!("is {:?}; write \"gres\" or \"gpus-per-node\"", settings.gpu_request);
        faults.add("gpu_request", advice);
    }
    let gres: Vec<Gres> = faults.each("gres", &settings.gres);
    for (index, gres) in gres.iter().enumerate().filter(|(_, gres)| gres.is_gpu() || gres.is_shared_gpu()) {
        let advice = format_args!("{:?} is for jobs to ask for; leave it out", gres.to_string());
        faults.add_at("gres", index, advice);
    }
    let options = SubmitOptions {
        account: None,
        qos: faults.parse_some("qos", settings.qos.as_ref()),
        reservation: faults.parse_some("reservation", settings.reservation.as_ref()),
        nice: settings.nice,
        comment: faults.parse_some("comment", settings.comment.as_ref()),
        memory: memory(settings, faults),
        gpu_type: faults.parse_some("gpu_type", settings.gpu_type.as_ref()),
        gres,
        constraint: faults.parse_some("constraint", settings.constraint.as_ref()),
        nodelist: faults.parse_some("nodelist", settings.nodelist.as_ref()),
        exclude: faults.parse_some("exclude", settings.exclude.as_ref()),
        licenses: faults.parse_some("licenses", settings.licenses.as_ref()),
        switches: faults.parse_some("switches", settings.switches.as_ref()),
        others: others(settings, faults),
    };
    let mpi_plugin = faults.parse_some("mpi_plugin", settings.mpi_plugin.as_ref());
    Some(SubmitSettings {
        gpu_request: gpu_request.ok()?,
        exclusive: settings.exclusive,
        mpi_plugin,
        options,
    })
}

fn memory(settings: &ClusterSettings, faults: &mut Faults) -> Option<MemoryRequest> {
    let ClusterSettings { memory, memory_per_cpu, memory_per_gpu, .. } = settings;
    let mut read = |key, text: &Option<String>| faults.parse_some::<Memory>(key, text.as_ref());
    let given: Vec<MemoryRequest> = [
        read("memory", memory).map(MemoryRequest::PerNode),
        read("memory_per_cpu", memory_per_cpu).map(MemoryRequest::PerCpu),
        read("memory_per_gpu", memory_per_gpu).map(MemoryRequest::PerGpu),
    ]
    .into_iter()
    .flatten()
    .collect();
    if given.len() > 1 {
        let advice = "contradicts another key; set only one of memory, memory_per_cpu and memory_per_gpu";
        faults.add_as("memory", "contradiction", advice);
    }
    given.first().copied()
}

fn others(
    settings: &ClusterSettings,
    faults: &mut Faults,
) -> std::collections::BTreeMap<slurm::OptionName, slurm::OptionValue> {
    let mut asked = Map::new();
    for (name, value) in &settings.sbatch_options {
        let value = match value {
            toml::Value::String(text) => Value::from(text.as_str()),
            toml::Value::Integer(number) => Value::from(*number),
            toml::Value::Float(number) => Value::from(*number),
            toml::Value::Boolean(is_set) => Value::from(*is_set),
            toml::Value::Datetime(time) => Value::from(time.to_string()),
            // Refused below.
            toml::Value::Array(_) | toml::Value::Table(_) => Value::Array(Vec::new()),
        };
        asked.insert(name.clone(), value);
    }
    cluster_options(&asked).unwrap_or_else(|wrong| {
        for fault in wrong {
            faults.add_as(
                "sbatch_options",
                fault.code,
                format_args!("{}: {}", fault.pointer.trim_start_matches('/'), fault.detail),
            );
        }
        std::collections::BTreeMap::new()
    })
}
