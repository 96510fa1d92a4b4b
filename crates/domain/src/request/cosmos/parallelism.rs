//! The sizes of a role, as a specification says them.

use serde_json::Value;

use crate::violation::Violation;

/// How often a role's model is there, and how many GPUs each of its replicas takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parallelism {
    pub(super) replicas: u64,
    pub(super) gpus: u64,
}

/// More than any cluster has; and a product of them fits into 64 bits.
const MOST: u64 = 8192;

/// The parallelism of the role `policy` or `rollout`; everything that is not said is 1.
pub(super) fn of(specs: &Value, role: &str) -> Result<Parallelism, Vec<Violation>> {
    let mut wrong = Vec::new();
    let mut size = |name: &str| {
        let said = specs.pointer(&format!("/{role}/parallelism/{name}"));
        match said {
            None | Some(Value::Null) => 1,
            // cosmos-rl reads a number below 1 here as "whatever is left", and TAO as 1.
            Some(value) if name == "dp_shard_size" && value.as_i64().is_some_and(|size| size < 1) => 1,
            Some(value) => value.as_u64().filter(|size| (1..=MOST).contains(size)).unwrap_or_else(|| {
                wrong.push(Violation::new(
                    format!("/specs/{role}/parallelism/{name}"),
                    "out_of_range",
                    format_args!("must be a whole number from 1 to {MOST}"),
                ));
                1
            }),
        }
    };
    let replicas = size("n_init_replicas");
    let sizes: &[&str] = if role == "policy" {
        &["tp_size", "pp_size", "cp_size", "dp_replicate_size", "dp_shard_size"]
    } else {
        &["tp_size", "pp_size"]
    };
    let gpus = sizes.iter().map(|name| size(name)).fold(1_u64, u64::saturating_mul);
    if wrong.is_empty() && gpus > MOST {
        let detail = format_args!("a replica has {gpus} GPUs; at most {MOST} can be asked for");
        wrong.push(Violation::new(format!("/specs/{role}/parallelism"), "impossible_shape", detail));
    }
    if wrong.is_empty() { Ok(Parallelism { replicas, gpus }) } else { Err(wrong) }
}
