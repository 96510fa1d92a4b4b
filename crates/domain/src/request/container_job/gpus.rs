//! How many GPUs a specification wants: TAO's body has no field for it, and the program in the container starts a
//! process for each that the specification names.

use std::collections::HashSet;

use serde_json::{Map, Value};

const COUNTS: [&str; 2] = ["gpus", "num_gpus"];
const LISTS: [&str; 2] = ["gpu_ids", "gpu_id"];

/// The highest number that any of TAO's places says; none when none of them does.
pub(super) fn gpus_per_node(specs: &Map<String, Value>, action: &str) -> Option<u32> {
    let section = specs.get(action).and_then(Value::as_object);
    let system = section.and_then(|section| section.get("system")).and_then(Value::as_object);
    let places = [Some(specs), section, system];
    places.into_iter().flatten().filter_map(said).max()
}

fn said(place: &Map<String, Value>) -> Option<u32> {
    let counts = COUNTS.iter().filter_map(|key| place.get(*key)).filter_map(Value::as_u64);
    let lists = LISTS.iter().filter_map(|key| place.get(*key)).map(ids);
    let most = counts.chain(lists).filter(|number| *number > 0).max()?;
    // More than any machine has: refused with the number's own field.
    Some(u32::try_from(most).unwrap_or(u32::MAX))
}

/// A list names each GPU; a number names one.
fn ids(value: &Value) -> u64 {
    match value {
        Value::Array(ids) => {
            let distinct: HashSet<String> = ids.iter().map(ToString::to_string).collect();
            distinct.len() as u64
        }
        Value::Number(_) => 1,
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Object(_) => 0,
    }
}
