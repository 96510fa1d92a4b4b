//! The options of a request: what it asks Slurm for beyond nodes, GPUs, CPUs and time.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde_json::{Map, Value};
use slurm::{
    Gres, Memory, MemoryRequest, Moment, NodeSet, OptionName, OptionText, OptionValue, Ownership,
    SubmitOptions, WallTime,
};

use crate::{
    request::{
        body::{BackendDetails, JobRequest},
        options_body::{GresRequest, ResourcesRequest},
    },
    violation::{Faults, Violation, pointer},
};

const MAX_GRES: usize = 20;
const MAX_OTHERS: usize = 50;
/// slurm.h reserves the numbers beyond.
const MOST_NICE: i32 = 2_147_483_645;

/// The options of a request, without the cluster's defaults.
pub(crate) fn options(request: &JobRequest, faults: &mut Faults) -> SubmitOptions {
    fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(
        faults: &mut Faults,
        at: &str,
        text: Option<&String>,
    ) -> Option<T> {
        faults.parse(at, text?)
    }
    let ResourcesRequest {
        memory, gpu_type, gres, constraint, nodelist, exclude, licenses, switches, ..
    } = &request.resources;
    let BackendDetails { account, qos, reservation, nice, comment, sbatch_options, .. } =
        &request.backend_details;
    SubmitOptions {
        account: parse(faults, "/backend_details/account", account.as_ref()),
        qos: parse(faults, "/backend_details/qos", qos.as_ref()),
        reservation: parse(faults, "/backend_details/reservation", reservation.as_ref()),
        nice: nice.and_then(|nice| self::nice(nice, faults)),
        comment: parse(faults, "/backend_details/comment", comment.as_ref()),
        memory: memory.as_ref().and_then(|memory| self::memory("/resources/memory", memory, faults)),
        gpu_type: parse(faults, "/resources/gpu_type", gpu_type.as_ref()),
        gres: self::gres(gres.as_deref().unwrap_or_default(), faults),
        constraint: parse(faults, "/resources/constraint", constraint.as_ref()),
        nodelist: parse(faults, "/resources/nodelist", nodelist.as_ref()),
        exclude: parse(faults, "/resources/exclude", exclude.as_ref()),
        licenses: parse(faults, "/resources/licenses", licenses.as_ref()),
        switches: parse(faults, "/resources/switches", switches.as_ref()),
        others: others("/backend_details/sbatch_options", sbatch_options, faults),
    }
}

/// The earliest start and the latest end.
pub(crate) fn moments(request: &JobRequest, faults: &mut Faults) -> (Option<Moment>, Option<Moment>) {
    let BackendDetails { begin, deadline, .. } = &request.backend_details;
    let begin = begin.as_ref().and_then(|text| faults.parse("/backend_details/begin", text));
    let deadline = deadline.as_ref().and_then(|text| faults.parse("/backend_details/deadline", text));
    let between = begin.zip(deadline).and_then(|(begin, deadline): (Moment, Moment)| begin.until(deadline));
    if between.is_some_and(|time| time <= TimeDelta::zero()) {
        faults.add("/backend_details/deadline", "contradiction", "is not after begin");
    }
    (begin, deadline)
}

/// Slurm does not start a job that could run past its deadline.
pub(crate) fn leaves_time(
    begin: Option<Moment>,
    deadline: Option<Moment>,
    time: WallTime,
    faults: &mut Faults,
) {
    // Otherwise the present time decides: `too_late`.
    let left = deadline.and_then(|deadline| begin.unwrap_or(Moment::After(0)).until(deadline));
    if let Some(detail) = left.filter(|left| *left > TimeDelta::zero()).and_then(|left| too_short(left, time))
    {
        faults.add("/backend_details/deadline", "contradiction", detail);
    }
}

/// What is wrong if so much time is left for a job.
pub(crate) fn too_short(left: TimeDelta, time: WallTime) -> Option<String> {
    let left = u64::try_from(left.num_seconds()).unwrap_or_default();
    (left < time.seconds()).then(|| {
        format!(
            "leaves {} minutes, and the job's time limit is {}: Slurm would never start it; request less time, or a later deadline",
            left / 60,
            time.minutes()
        )
    })
}

fn nice(nice: i32, faults: &mut Faults) -> Option<i32> {
    let is_right = (-MOST_NICE..=MOST_NICE).contains(&nice);
    if !is_right {
        let detail = format_args!("is {nice}; must be from -{MOST_NICE} to {MOST_NICE}");
        faults.add("/backend_details/nice", "out_of_range", detail);
    }
    is_right.then_some(nice)
}

/// A text, or an object with exactly one key.
fn memory(at: &str, asked: &Value, faults: &mut Faults) -> Option<MemoryRequest> {
    type Make = fn(Memory) -> MemoryRequest;
    const KEYS: [(&str, Make); 3] = [
        ("per_node", MemoryRequest::PerNode),
        ("per_cpu", MemoryRequest::PerCpu),
        ("per_gpu", MemoryRequest::PerGpu),
    ];
    let Value::Object(keys) = asked else {
        return Some(MemoryRequest::PerNode(amount(at, asked, faults)?));
    };
    for key in keys.keys().filter(|key| KEYS.iter().all(|(known, _)| key != known)) {
        let detail = "is not a known field; the known fields are `per_node`, `per_cpu`, `per_gpu`";
        faults.add(pointer(at, key), "unknown_field", detail);
    }
    let is_given = |(key, _): &&(&str, Make)| keys.get(*key).is_some_and(|value| !value.is_null());
    let given: Vec<&(&str, Make)> = KEYS.iter().filter(is_given).collect();
    let [(key, make)] = given.as_slice() else {
        let detail = "must have exactly one of per_node, per_cpu and per_gpu, because sbatch takes only one";
        faults.add(at, if given.is_empty() { "required" } else { "contradiction" }, detail);
        return None;
    };
    let memory = amount(&pointer(at, key), &keys[*key], faults)?;
    if memory.mib() == 0 && *key != "per_node" {
        faults.add(pointer(at, key), "out_of_range", "is 0; only memory of a node may be 0, for all of it");
    }
    Some(make(memory))
}

fn amount(at: &str, asked: &Value, faults: &mut Faults) -> Option<Memory> {
    if let Some(text) = asked.as_str() {
        return faults.parse(at, text);
    }
    let detail = "must be a string such as \"64G\", or an object with per_node, per_cpu or per_gpu";
    faults.add(at, "wrong_type", detail);
    None
}

fn gres(asked: &[GresRequest], faults: &mut Faults) -> Vec<Gres> {
    if asked.len() > MAX_GRES {
        faults.add("/resources/gres", "too_many", format_args!("must have at most {MAX_GRES} entries"));
        return Vec::new();
    }
    let mut found: Vec<Gres> = Vec::new();
    for (index, GresRequest { name, kind, count }) in asked.iter().enumerate() {
        let at = format!("/resources/gres/{index}");
        let name = faults.parse(&format!("{at}/name"), name);
        let typed = kind.as_ref().map(|kind| faults.parse(&format!("{at}/type"), kind));
        let count = faults.within(&format!("{at}/count"), count.unwrap_or(1), 1..=Gres::MAX_COUNT);
        let (Some(name), kind) = (name, typed.flatten()) else { continue };
        let gres = Gres { name, kind, count };
        if found.iter().any(|known| known.name == gres.name && known.kind == gres.kind) {
            faults.add(at, "repeated", "names a resource that another entry names; add their counts");
        }
        found.push(gres);
    }
    if found.iter().any(Gres::is_shared_gpu) && found.iter().any(Gres::is_gpu) {
        let detail = "has GPUs and parts of shared GPUs; Slurm gives a job only one of them";
        faults.add("/resources/gres", "contradiction", detail);
    }
    found
}

/// The default options of a cluster, from its settings. The pointers of the faults are the names of options.
pub fn cluster_options(
    asked: &Map<String, Value>,
) -> Result<BTreeMap<OptionName, OptionValue>, Vec<Violation>> {
    let mut faults = Faults::default();
    let asked: BTreeMap<String, Value> =
        asked.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let found = others("", &asked, &mut faults);
    if faults.0.is_empty() { Ok(found) } else { Err(faults.0) }
}

fn others(
    at: &str,
    asked: &BTreeMap<String, Value>,
    faults: &mut Faults,
) -> BTreeMap<OptionName, OptionValue> {
    if asked.len() > MAX_OTHERS {
        faults.add(at, "too_many", format_args!("must have at most {MAX_OTHERS} options"));
    }
    let mut found = BTreeMap::new();
    for (name, value) in asked.iter().take(MAX_OTHERS) {
        let at = pointer(at, name);
        let Some(name) = faults.parse::<OptionName>(&at, name) else { continue };
        let value = match value {
            Value::Null | Value::Bool(false) => Some(OptionValue::Drop),
            Value::Bool(true) => Some(OptionValue::Flag),
            Value::Number(number) => faults.parse(&at, &number.to_string()).map(OptionValue::Text),
            Value::String(text) => faults.parse::<OptionText>(&at, text).map(OptionValue::Text),
            Value::Array(_) | Value::Object(_) => {
                let detail = "must be a string, a number, true, or false or null to leave the option out";
                faults.add(at.clone(), "wrong_type", detail);
                None
            }
        };
        let Some(value) = value else { continue };
        if let Ownership::Service { may_drop, instead } = name.ownership()
            && !(may_drop && value == OptionValue::Drop)
        {
            let detail = format!("belongs to the service; use {instead} instead");
            faults.add(at, "reserved", detail);
            continue;
        }
        found.insert(name, value);
    }
    found
}

/// What contradicts the number of nodes, tasks and GPUs. `options` has the cluster's defaults too; `own` are the request's.
pub(crate) fn contradictions(
    own: &SubmitOptions,
    options: &SubmitOptions,
    (nodes, gpus): (u32, u32),
    faults: &mut Faults,
) {
    let listed = own.nodelist.as_ref().map(NodeSet::nodes).unwrap_or_default();
    if listed.len() > usize::try_from(nodes).unwrap_or(usize::MAX) {
        let detail = format_args!(
            "names {} nodes, but the job gets {nodes}; set num_nodes, because a job gets every listed node",
            listed.len()
        );
        faults.add("/resources/nodelist", "contradiction", detail);
    }
    let excluded = options.exclude.as_ref().map(NodeSet::nodes).unwrap_or_default();
    if let Some(both) = listed.iter().find(|node| excluded.contains(node)) {
        let detail = format_args!("has {both}, which is in nodelist too");
        faults.add("/resources/exclude", "contradiction", detail);
    }
    if own.gpu_type.is_some() && gpus == 0 {
        faults.add("/resources/gpu_type", "contradiction", "is the type of GPUs, but the job gets none");
    }
    if matches!(own.memory, Some(MemoryRequest::PerGpu(_))) && gpus == 0 {
        let detail = "is for each GPU, but the job gets none";
        faults.add("/resources/memory/per_gpu", "contradiction", detail);
    }
}

#[cfg(test)]
mod tests;
