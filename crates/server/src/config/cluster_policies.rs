//! The image, retry and batch script policies of a cluster.

use domain::{
    BatchSettings, ClusterIdlePolicy, IdlePolicy, ImagePolicy, ImageSettings, RetrySettings, RpcBudget,
};
use slurm::RemotePath;

use super::{
    cluster_settings::ClusterSettings,
    faults::{Faults, OUT_OF_RANGE},
};

/// Slurm's limit for the time of `--signal` (sbatch(1)).
const MOST_WARNING_SECONDS: u32 = 65_535;

pub(super) fn images(
    settings: &ClusterSettings,
    base_dir: &RemotePath,
    faults: &mut Faults,
) -> Option<ImageSettings> {
    let &ClusterSettings { use_sqsh, require_sqsh, force_reconvert_latest, .. } = settings;
    let runtime = settings.container_runtime.parse();
    if runtime.is_err() {
        let advice = format_args!("is {:?}; write \"pyxis\" or \"apptainer\"", settings.container_runtime);
        faults.add("container_runtime", advice);
    }
    if require_sqsh && !use_sqsh {
        let advice = "needs use_sqsh, which is false; set use_sqsh = true or require_sqsh = false";
        faults.add_as("require_sqsh", "contradiction", advice);
    }
    let cache_dir = faults.parse_some("sqsh_cache_dir", settings.sqsh_cache_dir.as_ref());
    let partition = faults.parse("conversion_partition", &settings.conversion_partition);
    within(faults, "conversion_minutes", settings.conversion_minutes, 1, 24 * 60);
    within(faults, "conversion_memory_gb", settings.conversion_memory_gb, 1, 4096);
    Some(ImageSettings {
        policy: ImagePolicy { runtime: runtime.ok()?, use_sqsh, require_sqsh, force_reconvert_latest },
        cache_dir: cache_dir.unwrap_or_else(|| base_dir.clone()),
        conversion_minutes: settings.conversion_minutes,
        conversion_memory_gb: settings.conversion_memory_gb,
        temp_dir: faults.parse_some("enroot_temp_dir", settings.enroot_temp_dir.as_ref()),
        conversion_partition: partition?,
    })
}

pub(super) fn retries(settings: &ClusterSettings, faults: &mut Faults) -> RetrySettings {
    let &ClusterSettings { max_retries, max_requeues, node_exclusion_hours, .. } = settings;
    within(faults, "max_retries", max_retries, 0, 100);
    within(faults, "max_requeues", max_requeues, 0, 1000);
    within(faults, "node_exclusion_hours", node_exclusion_hours, 0, 24 * 365);
    let &ClusterSettings { use_requeue, cancel_unknown_jobs, .. } = settings;
    RetrySettings { max_retries, use_requeue, max_requeues, node_exclusion_hours, cancel_unknown_jobs }
}

pub(super) fn batch(settings: &ClusterSettings, faults: &mut Faults) -> Option<BatchSettings> {
    within(faults, "warning_seconds", settings.warning_seconds, 0, MOST_WARNING_SECONDS);
    within(faults, "usage_seconds", settings.usage_seconds, 0, 3600);
    let export = settings.sbatch_export.parse();
    if export.is_err() {
        let advice = format_args!("is {:?}; write \"ALL\" or \"NIL\"", settings.sbatch_export);
        faults.add("sbatch_export", advice);
    }
    Some(BatchSettings {
        mail_user: faults.parse_some("mail_user", settings.mail_user.as_ref()),
        warning_seconds: settings.warning_seconds,
        sbatch_export: export.ok()?,
        usage_seconds: settings.usage_seconds,
        idle: idle_policy(settings, faults),
    })
}

/// The RPC budget: both numbers, and nothing else.
pub(super) fn rpc_budget(settings: &ClusterSettings, faults: &mut Faults) -> Option<RpcBudget> {
    let table = settings.rpc_budget.as_ref()?;
    let mut number = |key: &str| {
        let number =
            table.get(key).and_then(toml::Value::as_integer).and_then(|number| u32::try_from(number).ok());
        let number = number.filter(|number| (1..=RpcBudget::MOST).contains(number));
        if number.is_none() {
            let advice = format_args!(
                "needs `{key}`, a number from 1 to {}; write for example {{ burst = 40, per_minute = 4 }}",
                RpcBudget::MOST
            );
            faults.add_as("rpc_budget", OUT_OF_RANGE, advice);
        }
        number
    };
    let (burst, per_minute) = (number("burst"), number("per_minute"));
    if let Some(other) = table.keys().find(|key| !matches!(key.as_str(), "burst" | "per_minute")) {
        let advice = format_args!("has no key `{other}`; the keys are burst and per_minute");
        faults.add_as("rpc_budget", "unknown_field", advice);
    }
    Some(RpcBudget { burst: burst?, per_minute: per_minute? })
}

/// The idle policy: at least its minutes, and nothing else than its four keys.
fn idle_policy(settings: &ClusterSettings, faults: &mut Faults) -> Option<ClusterIdlePolicy> {
    const KEYS: [&str; 4] = ["below_percent", "minutes", "action", "exempt_labels"];
    let table = settings.idle_policy.as_ref()?;
    let mut refuse = |code, advice: &str| faults.add_as("idle_policy", code, advice);
    if let Some(other) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
        refuse("unknown_field", &format!("has no key `{other}`; the keys are {}", KEYS.join(", ")));
    }
    let number = |key| {
        table.get(key).map(|value| value.as_integer().and_then(|number| number.try_into().ok()).unwrap_or(0))
    };
    let action = match table.get("action").map(|value| value.as_str().unwrap_or_default().parse()) {
        Some(Ok(action)) => Some(action),
        Some(Err(_)) => {
            refuse(OUT_OF_RANGE, "needs an `action` that is \"warn\", \"pause\" or \"cancel\"");
            None
        }
        None => None,
    };
    let labels = match table.get("exempt_labels") {
        Some(labels) => labels
            .as_array()
            .and_then(|labels| labels.iter().map(|label| label.as_str().map(str::to_owned)).collect()),
        None => Some(Vec::new()),
    };
    if labels.is_none() {
        refuse(
            OUT_OF_RANGE,
            "needs `exempt_labels` as a list of labels, such as [\"interactive\", \"team:vision\"]",
        );
    }
    match IdlePolicy::new(number("below_percent"), number("minutes").unwrap_or(0), action) {
        Ok(policy) => Some(ClusterIdlePolicy { policy, exempt_labels: labels? }),
        Err((field, most)) => {
            refuse(OUT_OF_RANGE, &format!("needs `{field}`, a number from 1 to {most}"));
            None
        }
    }
}

fn within(faults: &mut Faults, key: &str, value: u32, least: u32, most: u32) {
    if !(least..=most).contains(&value) {
        faults.add_as(key, OUT_OF_RANGE, format_args!("is {value}; write a number from {least} to {most}"));
    }
}
